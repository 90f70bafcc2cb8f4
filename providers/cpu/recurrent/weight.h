// Multiplies rows by a weight, gate by gate: by panels that are packed once or at each launch, or, if there are few
// rows in all, by the weight as it lies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "providers/cpu/movement/tile.h"
#include "providers/cpu/recurrent/kernel.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/vector_matmul/kernel.h"

namespace tenon::provider::cpu {

// The number of gates, and the block of a weight's rows that holds gate number `gate` in ONNX's order.
inline int64_t gate_count(int32_t cell) { return cell == EP_CELL_LSTM ? 4 : cell == EP_CELL_GRU ? 3 : 1; }
inline int64_t gate_block(const ep_recurrent_attributes& at, int64_t gate) {
  constexpr int64_t lstm[] = {0, 3, 1, 2};
  constexpr int64_t gru[] = {1, 0, 2};
  if ((at.flags & EP_RECURRENT_FLAG_TORCH) == 0) return gate;
  return at.cell == EP_CELL_LSTM ? lstm[gate] : at.cell == EP_CELL_GRU ? gru[gate] : 0;
}

// A weight [gates * width, depth] of any dtype and strides. Its packed form has for each gate [panels, depth, columns],
// the last panel padded with 0.
template <class T>
class Weight {
 public:
  // `values` must hold values() numbers. `rows`: the number of rows that will be multiplied. `packed`: `base` has the
  // packed form already.
  Weight(SimdLevel level, const ep_recurrent_attributes& at, const OperandShape& shape, int32_t dtype, const char* base,
         bool packed, int64_t rows, T* values)
      : kernels_(recurrent_kernels<T>(level)),
        fill_(tile_function(level, sizeof(T))),
        format_(dtype, level),
        at_(at),
        base_(base),
        row_(shape.strides[0]),
        column_(shape.strides[1]),
        width_(shape.dims[0] / gate_count(at.cell)),
        depth_(shape.dims[1]),
        per_gate_(panels_of(level, width_)),
        values_(values),
        panels_(packed ? reinterpret_cast<const T*>(base) : values),
        dot_(dtype, level),
        packs_(!packed && !is_direct(level, shape, dtype, rows)),
        is_direct_(!packed && !packs_) {}

  // The numbers that a launch packs.
  static int64_t values(SimdLevel level, const ep_recurrent_attributes& at, const OperandShape& shape, int32_t dtype,
                        bool packed, int64_t rows) {
    return packed || is_direct(level, shape, dtype, rows) ? 0 : packed_values(level, at, shape);
  }
  // The numbers of the packed form.
  static int64_t packed_values(SimdLevel level, const ep_recurrent_attributes& at, const OperandShape& shape) {
    return shape.dims[0] / width_of(at, shape) * step_of(level, width_of(at, shape)) * shape.dims[1];
  }
  static int64_t width_of(const ep_recurrent_attributes& at, const OperandShape& shape) {
    return shape.dims[0] / gate_count(at.cell);
  }
  // Columns per gate of the packed form.
  static int64_t step_of(SimdLevel level, int64_t width) {
    return panels_of(level, width) * recurrent_kernels<T>(level).columns;
  }

  // Panels per gate, columns per gate, and columns per panel.
  int64_t per_gate() const { return per_gate_; }
  int64_t step() const { return per_gate_ * kernels_.columns; }
  int64_t columns() const { return kernels_.columns; }

  // Packs panels [begin, end), counted over all gates.
  void pack(int64_t begin, int64_t end) {
    if (!packs_) return;
    const bool in_place = format_.same && column_ == 1;
    std::vector<T> copy(in_place ? 0 : static_cast<size_t>(columns() * depth_));
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t gate = panel / per_gate_, first = panel % per_gate_ * columns();
      const int64_t n = std::min<int64_t>(columns(), width_ - first);
      const char* const from = base_ + place(gate, first) * format_.size;
      for (int64_t i = 0; i < n && !in_place; ++i) {
        format_.read(copy.data() + i * depth_, 1, from + i * row_ * format_.size, column_, depth_);
      }
      T* const to = values_ + panel * columns() * depth_;
      if (n < columns()) std::fill_n(to, depth_ * columns(), T{0});
      fill_(to, columns(), in_place ? reinterpret_cast<const T*>(from) : copy.data(), in_place ? row_ : depth_, depth_,
            n);
    }
  }

  // dst[r] = rows[r] times `panels` panels starting at panel `first`, counted over all gates, plus bias, or plus dst if
  // `adds`. Rows of dst are `dst_row` apart.
  void run(const T* const* rows, int64_t count, int64_t first, int64_t panels, const T* bias, bool adds, T* dst,
           int64_t dst_row) const {
    if (is_direct_) return run_dots(rows, count, first, panels, bias, adds, dst, dst_row);
    kernels_.product({rows, count, depth_, panels_ + first * columns() * depth_, panels, bias, dst, dst_row, adds});
  }

 private:
  // Products of a row of the weight with a vector.
  struct Dot {
    int32_t dtype;
    VectorKernels<T> same;
    VectorKernels<float, Bf16Bits> bf16;
    VectorKernels<float, F16Bits> f16;

    Dot(int32_t of, SimdLevel level)
        : dtype(of),
          same(vector_kernels<T>(level)),
          bf16(vector_kernels<float, Bf16Bits>(level)),
          f16(vector_kernels<float, F16Bits>(level)) {}
    bool exists() const { return dtype != EP_DTYPE_f16 || f16.rows != nullptr; }
    // The function that puts a vector into the order that rows() expects; NULL: rows() takes it as it is.
    auto arrange() const -> void (*)(T*, const T*, int64_t) {
      if constexpr (std::is_same_v<T, float>) {
        if (dtype == EP_DTYPE_bf16) return bf16.arrange;
        if (dtype == EP_DTYPE_f16) return f16.arrange;
      }
      return same.arrange;
    }
    void rows(T* y, const char* a, int64_t row, const T* x, int64_t m, int64_t k) const {
      if constexpr (std::is_same_v<T, float>) {
        if (dtype == EP_DTYPE_bf16) return bf16.rows(y, 1, reinterpret_cast<const Bf16Bits*>(a), row, x, m, k);
        if (dtype == EP_DTYPE_f16) return f16.rows(y, 1, reinterpret_cast<const F16Bits*>(a), row, x, m, k);
      }
      same.rows(y, 1, reinterpret_cast<const T*>(a), row, x, m, k);
    }
  };

  static constexpr int64_t few_rows = 2;  // packing costs more than it saves

  static bool is_direct(SimdLevel level, const OperandShape& shape, int32_t dtype, int64_t rows) {
    return rows <= few_rows && shape.strides[1] == 1 && Dot(dtype, level).exists();
  }
  static int64_t panels_of(SimdLevel level, int64_t width) {
    const int64_t columns = recurrent_kernels<T>(level).columns;
    return (width + columns - 1) / columns;
  }
  // The offset of a row of a gate.
  int64_t place(int64_t gate, int64_t row) const { return (gate_block(at_, gate) * width_ + row) * row_; }

  void run_dots(const T* const* rows, int64_t count, int64_t first, int64_t panels, const T* bias, bool adds, T* dst,
                int64_t dst_row) const {
    std::vector<T> sums(static_cast<size_t>(per_gate_ * columns()));
    const auto arrange = dot_.arrange();
    std::vector<T> arranged(arrange == nullptr ? 0 : static_cast<size_t>(count * depth_));
    const auto vector = [&](int64_t r) { return arrange == nullptr ? rows[r] : arranged.data() + r * depth_; };
    for (int64_t r = 0; r < count && arrange != nullptr; ++r) arrange(arranged.data() + r * depth_, rows[r], depth_);
    for (int64_t panel = first; panel < first + panels;) {
      const int64_t gate = panel / per_gate_, begin = panel % per_gate_;
      const int64_t end = std::min(per_gate_, begin + first + panels - panel);
      const int64_t n = std::min(end * columns(), width_) - begin * columns(), to = (panel - first) * columns();
      for (int64_t r = 0; r < count; ++r) {
        const char* const a = base_ + place(gate, begin * columns()) * format_.size;
        dot_.rows(sums.data(), a, row_, vector(r), n, depth_);
        T* const sum = dst + r * dst_row + to;
        for (int64_t j = 0; j < n; ++j) {
          sum[j] = sums[static_cast<size_t>(j)] + (adds ? sum[j] : bias != nullptr ? bias[to + j] : T{0});
        }
      }
      panel += end - begin;
    }
  }

  RecurrentKernels<T> kernels_;
  TileFunction fill_;
  RowFormat format_;
  ep_recurrent_attributes at_;
  const char* base_;
  int64_t row_, column_;
  int64_t width_;
  int64_t depth_;
  int64_t per_gate_;
  T* values_;
  const T* panels_;
  Dot dot_;
  bool packs_;
  bool is_direct_;
};

}  // namespace tenon::provider::cpu
