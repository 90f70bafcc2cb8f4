// The tile of a convolution, compiled once per dispatch target. Its sums stay in registers while the loop processes the
// channels of each tap: each step loads the weights of two vectors of columns and one value per row.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/convolution/f32_tile.cpp"
#include "hwy/foreach_target.h"
//
#include <utility>

#include "hwy/cache_control.h"
#include "providers/cpu/convolution/finish-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

// Chosen so that the sums (rows x 2 vectors), two vectors of weights and one value fill the registers: 32 on AVX3, 16
// elsewhere.
constexpr int kMostRows = HWY_TARGET == HWY_AVX3 ? 14 : 6;

template <int kRows, int kVectors>
HWY_INLINE void sum_tile(const Tile& tile, const float* weights, V (&sum)[kRows][kVectors]) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* ahead = weights + tile.ahead;
  for (int64_t tap = 0; tap < tile.taps; ++tap) {
    if (tile.src[tap * kRows] == nullptr) {
      weights += tile.depth * kVectors * lanes;
      ahead += tile.depth * tile.ahead_step;
      continue;
    }
    const float* rows[kRows];
    for (int r = 0; r < kRows; ++r) rows[r] = tile.src[tap * kRows + r];
    for (int64_t p = 0; p < tile.depth; ++p, weights += kVectors * lanes, ahead += tile.ahead_step) {
      V right[kVectors];
      for (int v = 0; v < kVectors; ++v) hwy::Prefetch(ahead + v * lanes);
      for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, weights + v * lanes);
      for (int r = 0; r < kRows; ++r) {
        const V left = hn::Set(d, rows[r][p]);
        for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(left, right[v], sum[r][v]);
      }
    }
  }
}

// Computes one panel. Its columns begin at `column` of the tile. kWhole: they fill whole vectors.
template <int kRows, int kVectors, bool kWhole>
HWY_INLINE void run_panel(const Tile& tile, const float* weights, int64_t column) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto count = [&](int v) { return std::min<int64_t>(lanes, tile.columns - v * lanes); };
  float* dst = tile.dst + column;
  V sum[kRows][kVectors];
  for (int v = 0; v < kVectors; ++v) {
    const V bias = tile.bias == nullptr ? hn::Zero(d) : load<kWhole>(tile.bias + column + v * lanes, count(v));
    for (int r = 0; r < kRows; ++r) sum[r][v] = bias;
  }
  if (tile.adds) {
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) sum[r][v] = load<kWhole>(dst + r * tile.dst_row + v * lanes, count(v));
    }
  }
  sum_tile<kRows, kVectors>(tile, weights, sum);
  if (tile.finishes && tile.finish.other != nullptr) {
    const float* other = tile.finish.other + column;
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = hn::Add(sum[r][v], load<kWhole>(other + r * tile.dst_row + v * lanes, count(v)));
      }
    }
  }
  if (tile.finishes && tile.finish.bounded) {
    const V low = hn::Set(d, tile.finish.low), high = hn::Set(d, tile.finish.high);
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) sum[r][v] = bounded(sum[r][v], low, high);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) store<kWhole>(sum[r][v], dst + r * tile.dst_row + v * lanes, count(v));
  }
}

template <int kRows, int kVectors, bool kWhole>
void run_panels(const Tile& tile) {
  for (int64_t panel = 0; panel < tile.panels; ++panel) {
    run_panel<kRows, kVectors, kWhole>(tile, tile.weights + panel * tile.panel_floats, panel * tile.columns);
  }
}

using Run = void (*)(const Tile& tile);

template <int kVectors, bool kWhole, int... kRows>
Run panels_of(int32_t rows, std::integer_sequence<int, kRows...>) {
  constexpr Run all[] = {run_panels<kRows + 1, kVectors, kWhole>...};
  return all[rows - 1];
}

void run(const Tile& tile) {
  const auto rows = std::make_integer_sequence<int, kMostRows>();
  const auto lanes = static_cast<int32_t>(hn::Lanes(D()));
  if (tile.columns == 2 * lanes) return panels_of<2, true>(tile.rows, rows)(tile);
  if (tile.columns == lanes) return panels_of<1, true>(tile.rows, rows)(tile);
  (tile.columns > lanes ? panels_of<2, false>(tile.rows, rows) : panels_of<1, false>(tile.rows, rows))(tile);
}

TileKernels kernels_of_target() {
  const auto lanes = static_cast<int32_t>(hn::Lanes(D()));
  return {run, kMostRows, lanes, 2 * lanes};
}

}  // namespace
}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

TileKernels tile_kernels(SimdLevel level) { return TENON_CPU_DISPATCH(level, kernels_of_target)(); }

}  // namespace tenon::provider::cpu
#endif
