// The positions that INDICES select with EP_GATHER_COORDINATES, for gather and scatter.
#pragma once

#include "providers/cpu/movement/bad_index.h"
#include "providers/cpu/rows/row.h"

namespace tenon::provider::cpu {

class Coordinates {
 public:
  // `whole` is the operand that the coordinates address. `batch` is the number of leading axes that it shares with
  // INDICES.
  Coordinates(const OperandShape& whole, const OperandShape& indices, int32_t batch)
      : count_(static_cast<int32_t>(indices.dims[indices.rank - 1])), stride_(indices.strides[indices.rank - 1]) {
    for (int32_t k = 0; k + 1 < indices.rank; ++k) {
      places_.add(indices.dims[k], indices.strides[k]);
      batch_.add(indices.dims[k], k < batch ? whole.strides[k] : 0);
    }
    for (int32_t k = 0; k < count_; ++k) named_.add(whole.dims[batch + k], whole.strides[batch + k]);
  }

  int64_t places() const { return places_.count(); }
  // The length of the first addressed axis.
  int64_t first_length() const { return named_.dims[0]; }

  // Returns the offset of position `i` in the whole, in elements, or -1 if one of its coordinates is out of range.
  // Writes the coordinate of the first addressed axis to `first`.
  int64_t offset(const char* indices, bool wide, int64_t i, BadIndex* bad, int64_t* first) const {
    const int64_t at = places_.offset(i);
    int64_t sum = batch_.offset(i);
    for (int32_t k = 0; k < count_; ++k) {
      const int64_t position = resolve_index(index_at(indices, at + k * stride_, wide), named_.dims[k], bad);
      if (position < 0) return -1;
      if (k == 0) *first = position;
      sum += position * named_.strides[k];
    }
    return sum;
  }

 private:
  int32_t count_;   // number of coordinates per position
  int64_t stride_;  // elements between coordinates
  Axes places_;     // outer axes of INDICES
  Axes batch_;      // the same dims, with the strides of the whole tensor
  Axes named_;
};

// The axes of `shape` from `axis` on.
inline Axes axes_from(const OperandShape& shape, int32_t axis) {
  Axes axes;
  for (int32_t k = axis; k < shape.rank; ++k) axes.add(shape.dims[k], shape.strides[k]);
  return axes;
}
// The axes of `shape` before `axis`.
inline Axes axes_before(const OperandShape& shape, int32_t axis) {
  Axes axes;
  for (int32_t k = 0; k < axis; ++k) axes.add(shape.dims[k], shape.strides[k]);
  return axes;
}

// The reason why the ranks of operands with coordinates do not fit. `taken` is DST of gather, SRC_B of scatter.
inline Refusal why_no_coordinates(const ep_operand_desc& whole, const ep_operand_desc& indices,
                                  const ep_operand_desc& taken, int32_t batch) {
  const int32_t count = whole.rank - batch + indices.rank - 1 - taken.rank;
  const int64_t given = indices.dims[indices.rank - 1];
  if (count < 1 || batch + count > whole.rank || batch > indices.rank - 1 || (given != EP_ANY && given != count))
    return Refusal::because("%d coordinates after %d axes of rank %d", count, batch, whole.rank);
  return {};
}

}  // namespace tenon::provider::cpu
