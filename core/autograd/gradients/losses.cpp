// Gradients of losses whose logarithms are bounded, so that the gradient cannot be composed from its parts.
#include "core/ops/attributes.h"
#include "core/ops/gradients.h"
#include "core/ops/operators.h"
#include "primitives/infer/broadcast.h"

namespace tenon::gradients {

// As in PyTorch: (input - target) / (input (1 - input)), with a divisor of at least 1e-12. For an f16 input the
// gradient is at most the greatest f16 number.
void binary_cross_entropy(const autograd::Backward& b) {
  const bool narrow = b.input(0).dtype() == DType::f16;
  const Tensor x = narrow || b.input(0).dtype() == DType::bf16 ? tenon::cast(b.input(0), DType::f32) : b.input(0);
  const Tensor target = b.input(1);
  Tensor grad = b.grad();
  if (b.attributes<BinaryCrossEntropyAttributes>().reduction.view() == "mean") {
    Dims dims = x.dims();
    if (b.has(2)) dims = value_or_throw(infer::broadcast("binary_cross_entropy", dims, b.input(2).dims()));
    grad = grad / static_cast<double>(element_count(dims));
  }
  if (b.wants(2)) b.give(2, grad * tenon::binary_cross_entropy(x, target, Tensor(), "none"));
  if (b.has(2)) grad = grad * b.input(2);
  if (b.wants(0)) b.give(0, grad * ((x - target) / tenon::maximum((1 - x) * x, narrow ? 1 / 65504.0 : 1e-12)));
  if (b.wants(1)) b.give(1, grad * (tenon::log1p(-x) - tenon::log(x)));
}

}  // namespace tenon::gradients
