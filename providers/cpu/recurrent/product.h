// Multiplies rows by a weight that is packed in panels, gate by gate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "providers/cpu/bf16_product/product.h"
#include "providers/cpu/convolution/kernel.h"
#include "providers/cpu/movement/tile.h"

namespace tenon::provider::cpu {

// The panels of a weight [gates * width, depth]: for each gate [panels, depth, columns], the last panel padded with 0.
template <class T>
class Panels {
 public:
  // `values` must hold gates * size(step(), depth) elements, aligned to 64 bytes.
  Panels(SimdLevel level, int64_t width, int64_t depth, T* values)
      : tiles_(tile_kernels(level)),
        fill_(tile_function(level, sizeof(T))),
        width_(width),
        depth_(depth),
        per_gate_((width + tiles_.columns - 1) / tiles_.columns),
        values_(values) {}

  // Panels per gate, columns per gate, and columns per panel.
  int64_t per_gate() const { return per_gate_; }
  int64_t step() const { return per_gate_ * tiles_.columns; }
  int64_t columns() const { return tiles_.columns; }
  // The number of T that the panels of a gate take.
  static int64_t size(int64_t step, int64_t depth) { return step * depth; }

  // Packs panel `panel` of a gate. The gate's rows, of `depth` elements each, are contiguous at `rows`.
  void pack(int64_t gate, int64_t panel, const T* rows) {
    const int64_t begin = panel * tiles_.columns;
    const int64_t n = std::min<int64_t>(tiles_.columns, width_ - begin);
    T* const to = values_ + (gate * step() + begin) * depth_;
    if (n < tiles_.columns) std::fill_n(to, depth_ * tiles_.columns, T{0});
    fill_(to, tiles_.columns, rows + begin * depth_, depth_, depth_, n);
  }

  // dst[r] = rows[r] times `count` panels starting at panel `first`, counted over all gates, plus bias, or plus dst if
  // `adds`. Rows of dst are `dst_row` apart.
  void run(const T* const* rows, int64_t row_count, int64_t first, int64_t count, const T* bias, bool adds, T* dst,
           int64_t dst_row) const {
    const T* weights = values_ + first * tiles_.columns * depth_;
    for (int64_t r = 0; r < row_count; r += tiles_.rows) {
      const int64_t n = std::min<int64_t>(tiles_.rows, row_count - r);
      if constexpr (sizeof(T) == 4) {
        Tile tile = {};
        tile.src = rows + r;
        tile.weights = weights;
        tile.bias = bias;
        tile.dst = dst + r * dst_row;
        tile.dst_row = dst_row;
        tile.taps = 1;
        tile.depth = depth_;
        tile.panels = count;
        tile.panel_floats = depth_ * tiles_.columns;
        tile.ahead = 256;
        tile.ahead_step = tiles_.columns;
        tile.rows = static_cast<int32_t>(n);
        tile.columns = tiles_.columns;
        tile.adds = adds;
        tiles_.run(tile);
      } else {
        for (int64_t i = r; i < r + n; ++i) run_row(rows[i], weights, count, bias, adds, dst + i * dst_row);
      }
    }
  }

 private:
  void run_row(const T* row, const T* weights, int64_t panels, const T* bias, bool adds, T* dst) const {
    for (int64_t panel = 0; panel < panels; ++panel, weights += depth_ * tiles_.columns, dst += tiles_.columns) {
      for (int32_t c = 0; c < tiles_.columns && !adds; ++c) {
        dst[c] = bias == nullptr ? T{0} : bias[panel * tiles_.columns + c];
      }
      for (int64_t p = 0; p < depth_; ++p) {
        for (int32_t c = 0; c < tiles_.columns; ++c) dst[c] += row[p] * weights[p * tiles_.columns + c];
      }
    }
  }

  TileKernels tiles_;
  TileFunction fill_;
  int64_t width_;
  int64_t depth_;
  int64_t per_gate_;
  T* values_;
};

// Panels of f32 whose weights and rows are rounded to bf16. A panel has a pair of weights for each pair of inputs and
// each column.
class RoundedPanels {
 public:
  RoundedPanels(SimdLevel level, int64_t width, int64_t depth, float* values)
      : columns_(tile_kernels(level).columns),
        fill_(tile_function(level, sizeof(float))),
        width_(width),
        depth_(depth),
        per_gate_((width + columns_ - 1) / columns_),
        values_(reinterpret_cast<Bf16Pair*>(values)) {}

  int64_t per_gate() const { return per_gate_; }
  int64_t step() const { return per_gate_ * columns_; }
  int64_t columns() const { return columns_; }
  static int64_t size(int64_t step, int64_t depth) { return step * pairs_of(depth); }

  void pack(int64_t gate, int64_t panel, const float* rows) {
    const int64_t begin = panel * columns_;
    const int64_t n = std::min(columns_, width_ - begin);
    std::vector<float> turned(static_cast<size_t>(depth_ * columns_));
    fill_(turned.data(), columns_, rows + begin * depth_, depth_, depth_, n);
    Bf16Pair* const to = values_ + (gate * step() + begin) * pairs_of(depth_);
    round_rows(to, columns_, turned.data(), columns_, depth_, columns_);
  }

  void run(const float* const* rows, int64_t row_count, int64_t first, int64_t count, const float* bias, bool adds,
           float* dst, int64_t dst_row) const {
    const int64_t depth = pairs_of(depth_);
    std::vector<Bf16Pair> rounded(static_cast<size_t>(row_count * depth));
    for (int64_t r = 0; r < row_count; ++r) round_row(rounded.data() + r * depth, rows[r], depth_);
    for (int64_t i = 0; i < count; ++i) {
      const Bf16Pair* const panel = values_ + (first + i) * columns_ * depth;
      cpu::run({rounded.data(), depth, 1, panel, columns_, bias == nullptr ? nullptr : bias + i * columns_,
                dst + i * columns_, dst_row, row_count, columns_, depth, adds});
    }
  }

 private:
  int64_t columns_;
  TileFunction fill_;
  int64_t width_;
  int64_t depth_;
  int64_t per_gate_;
  Bf16Pair* values_;
};

}  // namespace tenon::provider::cpu
