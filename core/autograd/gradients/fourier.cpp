// Fourier transforms are linear: their gradients are inverse transforms.
#include <vector>

#include "core/ops/attributes.h"
#include "core/ops/gradients.h"
#include "core/ops/operators.h"

namespace tenon::gradients {

void fft_c2c(const autograd::Backward& b) {
  const ep_fft_attributes& at = b.attributes<FourierAttributes>().transform;
  b.give(0, tenon::fft_c2c(b.grad(), at.axis, at.inverse == 0, b.scalar(0)));
}

// The real part of the inverse transform. Pairs beyond the half count as 0.
void fft_r2c(const autograd::Backward& b) {
  const ep_fft_attributes& at = b.attributes<FourierAttributes>().transform;
  const Tensor& grad = b.grad();
  Dims rest = grad.dims();
  rest[at.axis] = b.dims(0)[at.axis] - rest[at.axis];
  const Tensor whole =
      tenon::concat(std::vector<Tensor>{grad, tenon::zeros(rest, grad.dtype(), grad.device())}, at.axis);
  b.give(0, tenon::select(tenon::fft_c2c(whole, at.axis, true, b.scalar(0)), -1, 0));
}

// Each inner pair counts twice, for itself and its conjugate.
void fft_c2r(const autograd::Backward& b) {
  const auto& attributes = b.attributes<FourierAttributes>();
  const ep_fft_attributes& at = attributes.transform;
  Tensor half = tenon::fft_r2c(b.grad(), at.axis, b.scalar(0));
  const int64_t pairs = attributes.length / 2 + 1;
  const int64_t twice = (attributes.length + 1) / 2 - 1;  // the number of inner pairs
  const Tensor inside = tenon::narrow(half, at.axis, 1, twice) * 2;
  std::vector<Tensor> parts = {tenon::narrow(half, at.axis, 0, 1), inside};
  if (pairs > twice + 1) parts.push_back(tenon::narrow(half, at.axis, twice + 1, pairs - twice - 1));
  half = tenon::concat(parts, at.axis);
  if (at.inverse != 0) return b.give(0, half);
  b.give(0, tenon::concat(std::vector<Tensor>{tenon::narrow(half, -1, 0, 1), -tenon::narrow(half, -1, 1, 1)}, -1));
}

}  // namespace tenon::gradients
