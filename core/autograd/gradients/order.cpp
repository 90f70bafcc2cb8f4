// The gradients of scans.
#include <limits>

#include "core/ops/attributes.h"
#include "core/ops/gradients.h"
#include "core/ops/operators.h"

namespace tenon::gradients {
namespace {

// `x` shifted by `step` positions towards the end of `axis`; `fill` takes the free positions. A negative step shifts
// towards the beginning.
Tensor moved(const Tensor& x, int32_t axis, int64_t step, Scalar fill) {
  const int64_t kept = x.dim(axis) - std::abs(step);
  const Tensor part = tenon::narrow(x, axis, step > 0 ? 0 : -step, kept);
  Dims pads = Dims::filled(2 * (x.rank() - axis), 0);
  pads[pads.rank() - 2] = step > 0 ? step : 0;
  pads[pads.rank() - 1] = step > 0 ? 0 : -step;
  return tenon::pad(part, pads, "constant", fill);
}

}  // namespace

void cumsum(const autograd::Backward& b) {
  const ep_scan_attributes& at = b.attributes<ScanAttributes>().scan;
  b.give(0, tenon::cumsum(b.grad(), at.axis, DType::none, at.exclusive != 0, at.reverse == 0));
}

// Computes the scan as products of pairs of elements 1, 2, 4, .. positions apart, so that zeros need no special case.
void cumprod(const autograd::Backward& b) {
  const ep_scan_attributes& at = b.attributes<ScanAttributes>().scan;
  const int64_t forward = at.reverse != 0 ? -1 : 1;
  Tensor x = b.input(0);
  Tensor grad = b.grad();
  const int64_t length = x.dim(at.axis);
  if (length == 0) return b.give(0, tenon::zeros_like(x));
  if (at.exclusive != 0) grad = moved(grad, at.axis, -forward, Scalar(0));
  TensorList levels;
  for (int64_t step = 1; step < length; step *= 2) {
    levels.push_back(x);
    x = x * moved(x, at.axis, forward * step, Scalar(1));
  }
  for (size_t level = levels.size(); level-- > 0;) {
    const int64_t step = forward * (int64_t{1} << level);
    const Tensor& y = levels[level];
    grad = grad * moved(y, at.axis, step, Scalar(1)) + moved(grad * y, at.axis, -step, Scalar(0));
  }
  b.give(0, grad);
}

// exp(x_i) times the sum over j >= i of grad_j / exp(result_j). Computed in logarithms, with positive and negative
// terms apart.
void logcumsumexp(const autograd::Backward& b) {
  const int32_t axis = b.attributes<ScanAttributes>().scan.axis;
  const Tensor x = b.input(0);
  const Tensor result = b.result();
  const double none = -std::numeric_limits<double>::infinity();
  const auto part = [&](const Tensor& grad) {
    const Tensor there = tenon::gt(grad, 0);
    const Tensor logarithm = tenon::where(there, tenon::log(tenon::where(there, grad, 1)) - result, none);
    const Tensor sums = tenon::flip(tenon::logcumsumexp(tenon::flip(logarithm, axis), axis), axis);
    return tenon::exp(sums + x);
  };
  b.give(0, part(b.grad()) - part(-b.grad()));
}

}  // namespace tenon::gradients
