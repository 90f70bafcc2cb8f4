// Rows times a weight whose columns lie in panels, one run of panels per gate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "providers/cpu/convolution/kernel.h"

namespace tenon::provider::cpu {

// The panels of a weight [gates * width, depth]: of each gate [panels, depth, columns], the last panel filled with 0.
template <class T>
class Panels {
 public:
  Panels(SimdLevel level, int64_t gates, int64_t width, int64_t depth)
      : tiles_(tile_kernels(level)),
        width_(width),
        depth_(depth),
        per_gate_((width + tiles_.columns - 1) / tiles_.columns),
        values_(static_cast<size_t>(gates * step() * depth)) {}

  // The columns of one gate.
  int64_t step() const { return per_gate_ * tiles_.columns; }

  // Row j of gate `gate` is `row`, whose elements lie `stride` apart.
  void set(int64_t gate, int64_t j, const T* row) {
    T* to = values_.data() + (gate * per_gate_ + j / tiles_.columns) * depth_ * tiles_.columns + j % tiles_.columns;
    for (int64_t p = 0; p < depth_; ++p) to[p * tiles_.columns] = row[p];
  }

  // dst[r] = rows[r] * gates [first, first + count) + bias, or, with `adds`, + dst. Rows of dst lie `dst_row` apart.
  void run(const T* const* rows, int64_t row_count, int64_t first, int64_t count, const T* bias, bool adds, T* dst,
           int64_t dst_row) const {
    const T* weights = values_.data() + first * step() * depth_;
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
        tile.panels = count * per_gate_;
        tile.panel_floats = depth_ * tiles_.columns;
        tile.ahead = 256;
        tile.ahead_step = tiles_.columns;
        tile.rows = static_cast<int32_t>(n);
        tile.columns = tiles_.columns;
        tile.adds = adds;
        tiles_.run(tile);
      } else {
        for (int64_t i = r; i < r + n; ++i) run_row(rows[i], weights, count * per_gate_, bias, adds, dst + i * dst_row);
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
  int64_t width_;
  int64_t depth_;
  int64_t per_gate_;
  std::vector<T> values_;
};

}  // namespace tenon::provider::cpu
