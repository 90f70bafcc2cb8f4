// Gradient clipping.
#include <algorithm>
#include <cmath>

#include "core/autograd/autograd.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "core/optim/optim.h"
#include "primitives/text/format.h"

namespace tenon::optim {
namespace {

TensorList gradients_of(const TensorList& parameters) {
  TensorList gradients;
  for (const Tensor& parameter : parameters) {
    if (Tensor gradient = parameter.grad(); gradient.defined() && gradient.elements() != 0) {
      gradients.push_back(std::move(gradient));
    }
  }
  return gradients;
}

Tensor norm_of(const Tensor& x, double norm) {
  if (std::isinf(norm)) return tenon::amax(tenon::abs(x));
  if (norm == 1) return tenon::l1_norm(x);
  if (norm == 2) return tenon::l2_norm(x);
  return tenon::pow(tenon::sum(tenon::pow(tenon::abs(x), norm)), 1 / norm);
}

// The total norm, on the device of the first gradient, in at least f32.
Tensor total_norm(const TensorList& gradients, double norm) {
  const Device device = gradients[0].device();
  TensorList norms;
  for (const Tensor& gradient : gradients) {
    const bool narrow = gradient.dtype() != DType::f64 && gradient.dtype() != DType::f32;
    const Tensor one = norm_of(narrow ? tenon::cast(gradient, DType::f32) : gradient, norm);
    norms.push_back(one.device() == device ? one : tenon::to(one, device));
  }
  const bool precise = std::any_of(norms.begin(), norms.end(), [](const Tensor& x) { return x.dtype() == DType::f64; });
  for (Tensor& each : norms) each = tenon::cast(each, precise ? DType::f64 : DType::f32);
  return norms.size() == 1 ? norms[0] : norm_of(tenon::stack(norms), norm);
}

}  // namespace

Tensor clip_grad_norm(const TensorList& parameters, double most, double norm) {
  if (!(norm > 0)) {
    throw Error(Subject{"clip_grad_norm"}, Code::invalid_argument,
                fmt::format("the norm must be above 0, not {}.", norm));
  }
  const NoGrad scope;
  const TensorList gradients = gradients_of(parameters);
  if (gradients.empty()) return tenon::zeros(IntList());
  const Tensor total = total_norm(gradients, norm);
  const Tensor factor = tenon::minimum(most / (total + 1e-6), 1.0);
  for (const Tensor& gradient : gradients) {
    Tensor moved = tenon::cast(factor, gradient.dtype() == DType::f64 ? DType::f64 : DType::f32);
    if (moved.device() != gradient.device()) moved = tenon::to(moved, gradient.device());
    tenon::mul_(Tensor(gradient), moved);
  }
  return total;
}

void clip_grad_value(const TensorList& parameters, double most) {
  const NoGrad scope;
  for (const Tensor& gradient : gradients_of(parameters)) tenon::clamp_(Tensor(gradient), -most, most);
}

}  // namespace tenon::optim
