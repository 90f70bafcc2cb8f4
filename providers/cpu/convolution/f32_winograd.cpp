// The transforms of Winograd's convolution, compiled once per dispatch target. The matrices are those of A. Lavin and
// S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015 (arXiv:1509.09308), section 4.1.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/convolution/f32_winograd.cpp"
#include "hwy/foreach_target.h"
//
#include "providers/cpu/convolution/finish-inl.h"
#include "providers/cpu/convolution/winograd_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

template <bool kWhole>
HWY_INLINE void transform_square(const WinogradSquare& square, int64_t c, int64_t count) {
  V rows[4][4];
  for (int x = 0; x < 4; ++x) {
    V d[4];
    for (int y = 0; y < 4; ++y) d[y] = load<kWhole>(square.pixels[4 * y + x] + c, count);
    rows[0][x] = hn::Sub(d[0], d[2]);
    rows[1][x] = hn::Add(d[1], d[2]);
    rows[2][x] = hn::Sub(d[2], d[1]);
    rows[3][x] = hn::Sub(d[1], d[3]);
  }
  float* dst = square.dst + c;
  for (int y = 0; y < 4; ++y) {
    const V(&d)[4] = rows[y];
    store<kWhole>(hn::Sub(d[0], d[2]), dst + (4 * y + 0) * square.position, count);
    store<kWhole>(hn::Add(d[1], d[2]), dst + (4 * y + 1) * square.position, count);
    store<kWhole>(hn::Sub(d[2], d[1]), dst + (4 * y + 2) * square.position, count);
    store<kWhole>(hn::Sub(d[1], d[3]), dst + (4 * y + 3) * square.position, count);
  }
}

void run_square(const WinogradSquare& square) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t c = 0;
  for (; c + lanes <= square.channels; c += lanes) transform_square<true>(square, c, lanes);
  if (c < square.channels) transform_square<false>(square, c, square.channels - c);
}

// Computes g0, (g0 + g1 + g2) / 2, (g0 - g1 + g2) / 2 and g2.
HWY_INLINE void transform_taps(V g0, V g1, V g2, V (&out)[4]) {
  const V half = hn::Set(D(), 0.5f);
  const V sum = hn::Mul(hn::Add(g0, g2), half), middle = hn::Mul(g1, half);
  out[0] = g0;
  out[1] = hn::Add(sum, middle);
  out[2] = hn::Sub(sum, middle);
  out[3] = g2;
}

void run_weights(const WinogradWeights& weights) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t tap = weights.tap, position = weights.position, floats = weights.floats;
  const float* src = weights.src;
  float* dst = weights.dst;
  for (int64_t i = 0; i < floats; i += lanes, src += lanes, dst += lanes) {
    V columns[3][4];
    for (int x = 0; x < 3; ++x) {
      const auto at = [&](int y) { return hn::LoadU(d, src + (3 * y + x) * tap); };
      transform_taps(at(0), at(1), at(2), columns[x]);
    }
    for (int y = 0; y < 4; ++y) {
      V row[4];
      transform_taps(columns[0][y], columns[1][y], columns[2][y], row);
      for (int x = 0; x < 4; ++x) hn::StoreU(row[x], d, dst + (4 * y + x) * position);
    }
  }
}

// Computes the sums of 2 x 2 pixels.
HWY_INLINE void sums_of(const float* from, int64_t position, V (&out)[4]) {
  const D d;
  V rows[2][4];
  for (int x = 0; x < 4; ++x) {
    V m[4];
    for (int y = 0; y < 4; ++y) m[y] = hn::LoadU(d, from + (4 * y + x) * position);
    const V sum = hn::Add(m[1], m[2]), difference = hn::Sub(m[1], m[2]);
    rows[0][x] = hn::Add(m[0], sum);
    rows[1][x] = hn::Sub(difference, m[3]);
  }
  for (int y = 0; y < 2; ++y) {
    const V(&m)[4] = rows[y];
    const V sum = hn::Add(m[1], m[2]), difference = hn::Sub(m[1], m[2]);
    out[2 * y] = hn::Add(m[0], sum);
    out[2 * y + 1] = hn::Sub(difference, m[3]);
  }
}

template <bool kWhole>
HWY_INLINE void finish_pixel(const WinogradResults& results, V sum, int64_t pixel, int64_t column, int64_t count) {
  const int64_t at = results.offsets[pixel] + column;
  if (results.finish.other != nullptr) sum = hn::Add(sum, load<kWhole>(results.finish.other + at, count));
  if (results.finish.bounded) {
    sum = bounded(sum, hn::Set(D(), results.finish.low), hn::Set(D(), results.finish.high));
  }
  store<kWhole>(sum, results.dst + at, count);
}

template <int kVectors, bool kWhole>
bool finish_square(const WinogradResults& results) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[kVectors][4];
  V zero = hn::Zero(d);  // becomes NaN if a sum is infinite or NaN
  for (int v = 0; v < kVectors; ++v) {
    sums_of(results.sums + v * lanes, results.position, sums[v]);
    for (const V& sum : sums[v]) zero = hn::MulAdd(sum, hn::Zero(d), zero);
  }
  if (!hn::AllTrue(d, hn::Eq(zero, hn::Zero(d)))) return false;
  for (int v = 0; v < kVectors; ++v) {
    const int64_t column = v * lanes, count = std::min<int64_t>(lanes, results.columns - column);
    const V bias = results.bias == nullptr ? hn::Zero(d) : load<kWhole>(results.bias + column, count);
    for (int pixel = 0; pixel < 4; ++pixel) {
      if (results.offsets[pixel] < 0) continue;
      finish_pixel<kWhole>(results, hn::Add(sums[v][pixel], bias), pixel, column, count);
    }
  }
  return true;
}

bool run_results(const WinogradResults& results) {
  const auto lanes = static_cast<int32_t>(hn::Lanes(D()));
  if (results.columns == 2 * lanes) return finish_square<2, true>(results);
  if (results.columns == lanes) return finish_square<1, true>(results);
  return results.columns > lanes ? finish_square<2, false>(results) : finish_square<1, false>(results);
}

// Computes y0, y0 + y1, y0 - y1 and -y1.
HWY_INLINE void spread(V y0, V y1, V (&out)[4]) {
  out[0] = y0;
  out[1] = hn::Add(y0, y1);
  out[2] = hn::Sub(y0, y1);
  out[3] = hn::Neg(y1);
}

template <bool kWhole>
HWY_INLINE void transform_gradient(const WinogradGradient& gradient, int64_t c, int64_t count) {
  V columns[2][4];
  for (int x = 0; x < 2; ++x) {
    spread(load<kWhole>(gradient.pixels[x] + c, count), load<kWhole>(gradient.pixels[2 + x] + c, count), columns[x]);
  }
  for (int y = 0; y < 4; ++y) {
    V row[4];
    spread(columns[0][y], columns[1][y], row);
    for (int x = 0; x < 4; ++x) store<kWhole>(row[x], gradient.dst + c + (4 * y + x) * gradient.position, count);
  }
}

void run_gradient(const WinogradGradient& gradient) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t c = 0;
  for (; c + lanes <= gradient.channels; c += lanes) transform_gradient<true>(gradient, c, lanes);
  if (c < gradient.channels) transform_gradient<false>(gradient, c, gradient.channels - c);
}

// Computes m0 + (m1 + m2) / 2, (m1 - m2) / 2 and (m1 + m2) / 2 + m3.
HWY_INLINE void gather_taps(V m0, V m1, V m2, V m3, V (&out)[3]) {
  const V half = hn::Set(D(), 0.5f);
  const V sum = hn::Mul(hn::Add(m1, m2), half);
  out[0] = hn::Add(m0, sum);
  out[1] = hn::Mul(hn::Sub(m1, m2), half);
  out[2] = hn::Add(sum, m3);
}

bool run_weight_sums(const WinogradSums& sums) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V zero = hn::Zero(d);  // becomes NaN if a sum is infinite or NaN
  for (int64_t i = 0; i < sums.floats; i += lanes) {
    V columns[4][3];
    for (int x = 0; x < 4; ++x) {
      const auto at = [&](int y) { return hn::LoadU(d, sums.sums + i + (4 * y + x) * sums.position); };
      gather_taps(at(0), at(1), at(2), at(3), columns[x]);
    }
    for (int y = 0; y < 3; ++y) {
      V row[3];
      gather_taps(columns[0][y], columns[1][y], columns[2][y], columns[3][y], row);
      for (int x = 0; x < 3; ++x) {
        zero = hn::MulAdd(row[x], hn::Zero(d), zero);
        hn::StoreU(row[x], d, sums.dst + i + (3 * y + x) * sums.tap);
      }
    }
  }
  return hn::AllTrue(d, hn::Eq(zero, hn::Zero(d)));
}

WinogradKernels kernels_of_target() { return {run_square, run_weights, run_results, run_gradient, run_weight_sums}; }

}  // namespace
}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

WinogradKernels winograd_kernels(SimdLevel level) { return TENON_CPU_DISPATCH(level, kernels_of_target)(); }

}  // namespace tenon::provider::cpu
#endif
