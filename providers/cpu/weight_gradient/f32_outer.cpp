// Products that sum over pixels, compiled once per dispatch target. Sums stay in registers while the loop processes the
// pixels: each step loads two vectors of the right operand, and one value for each row of the left one.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/weight_gradient/f32_outer.cpp"
#include "hwy/foreach_target.h"
//
#include <utility>

#include "hwy/cache_control.h"
#include "providers/cpu/convolution/finish-inl.h"
#include "providers/cpu/weight_gradient/outer.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

// Chosen so that the sums (rows x 2 vectors), two vectors of the right operand and one value fill the registers: 32 on
// AVX3, 16 elsewhere.
constexpr int kMostOuterRows = HWY_TARGET == HWY_AVX3 ? 14 : 6;
constexpr int kMostVectors = 2;
constexpr int64_t kPixelsAhead = 8;  // prefetch distance to the L1 cache

template <int kRows, int kVectors, bool kWhole>
HWY_INLINE void sum_lines(const OuterTile& tile, V (&sum)[kRows][kVectors]) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t left_step = tile.left_step, right_step = tile.right_step;
  const int64_t left_ahead = kPixelsAhead * left_step, right_ahead = kPixelsAhead * right_step;
  for (int64_t i = 0; i < tile.line_count; ++i) {
    const OuterLine line = tile.lines[i];
    const float* left = tile.left + line.left;
    const float* right = tile.right + line.right;
    for (int64_t p = 0; p < line.count; ++p, left += left_step, right += right_step) {
      V values[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        hwy::Prefetch(right + right_ahead + v * lanes);
        values[v] = load<kWhole>(right + v * lanes, tile.columns);
      }
      hwy::Prefetch(left + left_ahead);
      for (int r = 0; r < kRows; ++r) {
        const V value = hn::Set(d, left[r]);
        for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(value, values[v], sum[r][v]);
      }
    }
  }
}

// The sums of a call are added to earlier ones at its end, so rounding errors grow with the number of calls and the
// pixels per call, not with all pixels.
template <int kRows, int kVectors, bool kWhole>
void run_rows(const OuterTile& tile) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  sum_lines<kRows, kVectors, kWhole>(tile, sum);
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      float* const to = tile.dst + (r * kMostVectors + v) * lanes;
      hn::StoreU(tile.adds ? hn::Add(hn::LoadU(d, to), sum[r][v]) : sum[r][v], d, to);
    }
  }
}

using Run = void (*)(const OuterTile& tile);

template <int kVectors, bool kWhole, int... kRows>
Run rows_of(int32_t rows, std::integer_sequence<int, kRows...>) {
  constexpr Run all[] = {run_rows<kRows + 1, kVectors, kWhole>...};
  return all[rows - 1];
}

void run(const OuterTile& tile) {
  const auto rows = std::make_integer_sequence<int, kMostOuterRows>();
  const auto lanes = static_cast<int32_t>(hn::Lanes(D()));
  if (tile.columns == 2 * lanes) return rows_of<2, true>(tile.rows, rows)(tile);
  if (tile.columns == lanes) return rows_of<1, true>(tile.rows, rows)(tile);
  rows_of<1, false>(tile.rows, rows)(tile);
}

OuterKernels kernels_of_target() { return {run, kMostOuterRows, kMostVectors * static_cast<int32_t>(hn::Lanes(D()))}; }

}  // namespace
}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

OuterKernels outer_kernels(SimdLevel level) { return TENON_CPU_DISPATCH(level, kernels_of_target)(); }

}  // namespace tenon::provider::cpu
#endif
