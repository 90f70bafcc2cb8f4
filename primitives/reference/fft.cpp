// fft: the sum defined in ep_api.h.
#include <cmath>
#include <numbers>

#include "primitives/reference/call.h"

namespace tenon::reference {
namespace {

// Element `index`, at position j along `axis`, of the whole sequence of n complex numbers.
struct Pair {
  double real;
  double imaginary;
};

Pair element(const Operand& src, const ep_fft_attributes& at, int64_t* index, int64_t j, int64_t n) {
  if (at.form == EP_FFT_REAL_TO_HALF) {
    index[at.axis] = j;
    return {src.get<double>(index), 0};
  }
  const bool mirrored = at.form == EP_FFT_HALF_TO_REAL && j > n / 2;
  const bool real = at.form == EP_FFT_HALF_TO_REAL && (j == 0 || 2 * j == n);
  const int32_t last = src.rank() - 1;
  index[at.axis] = mirrored ? n - j : j;
  index[last] = 0;
  Pair pair = {src.get<double>(index), 0};
  index[last] = 1;
  if (!real) pair.imaginary = mirrored ? -src.get<double>(index) : src.get<double>(index);
  return pair;
}

}  // namespace

void run_fft(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const ep_fft_attributes& at = call.desc.attributes.fft;
  const double scale = call.parameter<double>(0);
  const int64_t n = (at.form == EP_FFT_REAL_TO_HALF ? src : dst).dim(at.axis);
  const bool to_real = at.form == EP_FFT_HALF_TO_REAL;
  for_each_index(dst.dims(), [&](const int64_t* out) {
    const int64_t k = out[at.axis];
    const bool imaginary = !to_real && out[dst.rank() - 1] == 1;
    int64_t in[EP_MAX_RANK] = {};
    for (int32_t axis = 0; axis < src.rank(); ++axis) in[axis] = axis < dst.rank() ? out[axis] : 0;
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      const Pair x = element(src, at, in, j, n);
      const double angle = 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
      const double c = std::cos(angle);
      const double s = at.inverse != 0 ? std::sin(angle) : -std::sin(angle);
      sum += imaginary ? x.real * s + x.imaginary * c : x.real * c - x.imaginary * s;
    }
    dst.set(out, sum * scale);
  });
}

}  // namespace tenon::reference
