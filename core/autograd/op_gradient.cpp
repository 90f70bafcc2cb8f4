#include "core/autograd/op_gradient.h"

#include <utility>

#include "core/autograd/backward.h"

namespace tenon::autograd {

bool OpGradient::wants(size_t i) const { return backward_.wants(i); }
const Tensor& OpGradient::grad(size_t result) const { return backward_.grad(result); }
bool OpGradient::has(size_t i) const { return backward_.has(i); }
Tensor OpGradient::input(size_t i) const { return backward_.input(i); }
Tensor OpGradient::result(size_t i) const { return backward_.result(i); }
double OpGradient::scalar(size_t slot) const { return backward_.scalar(slot); }
Dims OpGradient::dims(size_t i) const { return backward_.dims(i); }
DType OpGradient::dtype(size_t i) const { return backward_.dtype(i); }
void OpGradient::give(size_t i, Tensor gradient) const { backward_.give(i, std::move(gradient)); }
const void* OpGradient::attribute_bytes() const { return &backward_.attributes<char>(); }

}  // namespace tenon::autograd
