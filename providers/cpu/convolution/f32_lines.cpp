// Lines of a convolution with one spatial dim and channels first, compiled once per dispatch target. Vectors run along
// a line. The sums of a few result channels stay in registers and share the loads of SRC.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/convolution/f32_lines.cpp"
#include "hwy/foreach_target.h"
//
#include "providers/cpu/convolution/finish-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

// Chosen so that sums, the vectors of SRC and one weight fill the registers: 32 on AVX3, 16 elsewhere.
constexpr int kResults = HWY_TARGET == HWY_AVX3 ? 8 : 4;
constexpr int kMostVectors = 3;

template <int kVectors>
HWY_INLINE void tile_of_results(const Lines& lines, int64_t x) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kResults][kVectors];
  for (int r = 0; r < kResults; ++r) {
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Set(d, lines.bias[r]);
  }
  const float* weights = lines.weights;
  for (int64_t c = 0; c < lines.channels; ++c) {
    const float* from = lines.src + c * lines.src_row + x;
    for (int64_t t = 0; t < lines.taps; ++t, from += lines.step, weights += kResults) {
      V values[kVectors];
      for (int v = 0; v < kVectors; ++v) values[v] = hn::LoadU(d, from + v * lanes);
      for (int r = 0; r < kResults; ++r) {
        const V weight = hn::Set(d, weights[r]);
        for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(values[v], weight, sum[r][v]);
      }
    }
  }
  const V low = hn::Set(d, lines.finish.low), high = hn::Set(d, lines.finish.high);
  for (int r = 0; r < kResults; ++r) {
    if (r >= lines.results) break;
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = r * lines.dst_row + x + v * lanes;
      const int64_t count = std::min(lanes, lines.count - x - v * lanes);
      V result = sum[r][v];
      if (lines.finish.other != nullptr) result = hn::Add(result, load<false>(lines.finish.other + at, count));
      if (lines.finish.bounded) result = bounded(result, low, high);
      store<false>(result, lines.dst + at, count);
    }
  }
}

void run_lines(const Lines& lines) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t x = 0;
  for (; x + (kMostVectors - 1) * lanes < lines.count; x += kMostVectors * lanes) {
    tile_of_results<kMostVectors>(lines, x);
  }
  for (; x < lines.count; x += lanes) tile_of_results<1>(lines, x);
}

LineKernel line_kernel_of_target() {
  return {run_lines, kResults, kMostVectors * static_cast<int64_t>(hn::Lanes(D()))};
}

}  // namespace
}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

LineKernel line_kernel(SimdLevel level) { return TENON_CPU_DISPATCH(level, line_kernel_of_target)(); }

}  // namespace tenon::provider::cpu
#endif
