// Products of unpacked weights and the pixels of a small plane, compiled once per dispatch target. The sums of a few
// result channels stay in registers and share the loads of pixels.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/convolution/f32_pixels.cpp"
#include "hwy/foreach_target.h"
//
#include "providers/cpu/convolution/finish-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

// Chosen so that sums, the vectors of pixels and one weight fill the registers: 32 on AVX3, 16 elsewhere.
constexpr int kResults = HWY_TARGET == HWY_AVX3 ? 8 : 4;
constexpr int kMostVectors = 3;

// Beyond the last result, the last result is computed again.
HWY_INLINE const float* weights_of(const PixelProducts& x, int result) {
  return x.weights + std::min<int64_t>(result, x.results - 1) * x.depth;
}

HWY_INLINE void finish_result(const PixelProducts& x, V sum, int result, int64_t pixel, int64_t count) {
  const int64_t at = result * x.dst_row + pixel;
  if (x.bias != nullptr) sum = hn::Add(sum, hn::Set(D(), x.bias[result]));
  if (x.finish.other != nullptr) sum = hn::Add(sum, load<false>(x.finish.other + at, count));
  if (x.finish.bounded) sum = bounded(sum, hn::Set(D(), x.finish.low), hn::Set(D(), x.finish.high));
  store<false>(sum, x.dst + at, count);
}

// Computes kVectors vectors of pixels starting at `pixel`.
template <int kVectors>
HWY_INLINE void tile_of_pixels(const PixelProducts& x, int64_t pixel) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kResults][kVectors];
  const float* weights[kResults];
  for (int r = 0; r < kResults; ++r) {
    weights[r] = weights_of(x, r);
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  const float* from = x.columns + pixel;
  for (int64_t k = 0; k < x.depth; ++k, from += x.row) {
    V values[kVectors];
    for (int v = 0; v < kVectors; ++v) values[v] = hn::LoadU(d, from + v * lanes);
    for (int r = 0; r < kResults; ++r) {
      const V weight = hn::Set(d, weights[r][k]);
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(values[v], weight, sum[r][v]);
    }
  }
  for (int r = 0; r < kResults; ++r) {
    if (r >= x.results) break;
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = pixel + v * lanes;
      finish_result(x, sum[r][v], r, at, std::min(lanes, x.dst_row - x.singles - at));
    }
  }
}

// Computes one of the pixels after the vectors, with vectors along the depth.
HWY_INLINE void single_pixel(const PixelProducts& x, int64_t number) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* const from = x.single + number * x.depth;
  V sum[kResults];
  const float* weights[kResults];
  for (int r = 0; r < kResults; ++r) {
    weights[r] = weights_of(x, r);
    sum[r] = hn::Zero(d);
  }
  for (int64_t k = 0; k < x.depth; k += lanes) {
    const int64_t count = std::min(lanes, x.depth - k);
    const V values = load<false>(from + k, count);
    for (int r = 0; r < kResults; ++r) sum[r] = hn::MulAdd(values, load<false>(weights[r] + k, count), sum[r]);
  }
  for (int r = 0; r < kResults; ++r) {
    if (r >= x.results) break;
    finish_result(x, hn::SumOfLanes(d, sum[r]), r, x.dst_row - x.singles + number, 1);
  }
}

void run_pixels(const PixelProducts& x) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t i = 0; i < x.singles; ++i) single_pixel(x, i);  // the first to read the weights from memory
  int64_t v = 0;
  for (; v + kMostVectors <= x.vectors; v += kMostVectors) tile_of_pixels<kMostVectors>(x, v * lanes);
  if (v + 2 == x.vectors) return tile_of_pixels<2>(x, v * lanes);
  if (v + 1 == x.vectors) tile_of_pixels<1>(x, v * lanes);
}

PixelKernel pixel_kernel_of_target() { return {run_pixels, kResults, static_cast<int64_t>(hn::Lanes(D()))}; }

}  // namespace
}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

PixelKernel pixel_kernel(SimdLevel level) { return TENON_CPU_DISPATCH(level, pixel_kernel_of_target)(); }

}  // namespace tenon::provider::cpu
#endif
