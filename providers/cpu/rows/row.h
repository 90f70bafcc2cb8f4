// Rows: kinds that work along axes divide each operand into rows. A row spans the "inner" axes; a loop visits the outer
// axes. A contiguous row of the compute type is used in place; every other row is copied to a buffer and back.
#pragma once

#include <cstdint>

#include "providers/cpu/elementwise/convert.h"
#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// Some axes of an operand: their lengths, and their strides in elements.
struct Axes {
  int32_t rank = 0;
  int64_t dims[EP_MAX_RANK];
  int64_t strides[EP_MAX_RANK];

  void add(int64_t dim, int64_t stride) {
    dims[rank] = dim;
    strides[rank] = stride;
    ++rank;
  }
  int64_t count() const {
    int64_t product = 1;
    for (int32_t axis = 0; axis < rank; ++axis) product *= dims[axis];
    return product;
  }
  // The distance, in elements, from the first element to element number `index` in row-major order.
  int64_t offset(int64_t index) const {
    int64_t sum = 0;
    for (int32_t axis = rank - 1; axis >= 0; --axis) {
      sum += index % dims[axis] * strides[axis];
      index /= dims[axis];
    }
    return sum;
  }
  // True if consecutive elements are `unit` apart.
  bool contiguous(int64_t unit = 1) const {
    int64_t expected = unit;
    for (int32_t axis = rank - 1; axis >= 0; --axis) {
      if (dims[axis] != 1 && strides[axis] != expected) return false;
      expected *= dims[axis];
    }
    return true;
  }
};

// The axes of `shape` whose bit in `mask` equals `set`.
Axes axes_of(const OperandShape& shape, uint32_t mask, bool set);

// Sorts the axes of two operands by falling strides of `dst`, drops axes of length 1, and merges axes that both
// operands walk alike.
void arrange(Axes* dst, Axes* src);

// Conversion of elements of a dtype to the compute type and back.
struct RowFormat {
  int32_t dtype = 0;
  int32_t size = 0;
  int32_t compute = 0;  // compute type: EP_DTYPE_f32, f64, i64 or u64
  int32_t compute_size = 0;
  ConvertFunction read = nullptr;   // from storage to compute type
  ConvertFunction write = nullptr;  // from compute type to storage
  bool same = false;

  // `level` affects only the speed of `read` and `write`.
  explicit RowFormat(int32_t dtype = EP_DTYPE_f32, SimdLevel level = SimdLevel::baseline);
  // The format of elements that are computed in their own type.
  static RowFormat stored(int32_t dtype);

  // The address of the row at `base`: the row in place if in_place(row), else a copy in `buffer`.
  const void* fetch(const char* base, const Axes& row, void* buffer) const;
  // Writes `values` to the row at `base`.
  void put(char* base, const Axes& row, const void* values) const;
  bool in_place(const Axes& row) const { return same && row.contiguous(); }
};

// The most elements of a row that a stack buffer holds. Longer rows use the workspace.
inline constexpr int64_t stack_row = 4096;

// Bytes of workspace that `threads` threads need for `rows` rows of `count` elements of at most 8 bytes each.
inline uint64_t row_workspace(int32_t threads, int64_t rows, int64_t count) {
  return count <= stack_row ? 0 : static_cast<uint64_t>(threads * rows * count * 8);
}

inline bool is_row_float(int32_t dtype) { return is_floating(dtype) && dtype_size(dtype) != 0; }

}  // namespace tenon::provider::cpu
