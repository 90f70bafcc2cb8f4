#include "providers/cpu/rows/row.h"

#include <span>

namespace tenon::provider::cpu {

Axes axes_of(const OperandShape& shape, uint32_t mask, bool set) {
  Axes axes;
  for (int32_t axis = 0; axis < shape.rank; ++axis) {
    if ((((mask >> axis) & 1U) != 0) == set) axes.add(shape.dims[axis], shape.strides[axis]);
  }
  return axes;
}

void arrange(Axes* dst, Axes* src) {
  int32_t order[EP_MAX_RANK], count = 0;
  for (int32_t axis = 0; axis < dst->rank; ++axis) {
    if (dst->dims[axis] == 1) continue;
    int32_t at = count++;
    for (; at > 0 && dst->strides[order[at - 1]] < dst->strides[axis]; --at) order[at] = order[at - 1];
    order[at] = axis;
  }
  Axes to, from;
  for (const int32_t axis : std::span(order, static_cast<size_t>(count))) {
    const int64_t dim = dst->dims[axis], to_stride = dst->strides[axis], from_stride = src->strides[axis];
    const int32_t last = to.rank - 1;
    if (last >= 0 && to.strides[last] == dim * to_stride && from.strides[last] == dim * from_stride) {
      to.dims[last] = from.dims[last] = dim * to.dims[last];
      to.strides[last] = to_stride;
      from.strides[last] = from_stride;
    } else {
      to.add(dim, to_stride);
      from.add(dim, from_stride);
    }
  }
  *dst = to;
  *src = from;
}

RowFormat::RowFormat(int32_t dtype_in, SimdLevel level)
    : dtype(dtype_in),
      size(dtype_size(dtype_in)),
      compute(wide_dtype(dtype_in)),
      compute_size(dtype_size(compute)),
      read(widen(dtype_in, level)),
      write(narrow(compute, dtype_in, level)),
      same(dtype_in == compute) {}

RowFormat RowFormat::stored(int32_t dtype) {
  RowFormat format;
  format.dtype = format.compute = dtype;
  format.size = format.compute_size = dtype_size(dtype);
  format.read = format.write = move_elements(format.size);
  format.same = true;
  return format;
}

namespace {

// Calls move(offset in storage, element number, length, stride) for each run. Innermost axes with steps of equal
// distance form one run.
template <class Move>
void for_each_run(const Axes& row, const Move& move) {
  Axes outer = row;
  int64_t length = 1, stride = 1;
  while (outer.rank > 0) {
    const int32_t last = outer.rank - 1;
    const int64_t dim = outer.dims[last], step = outer.strides[last];
    if (dim != 1 && length != 1 && step != length * stride) break;
    if (dim != 1 && length == 1) stride = step;
    length *= dim;
    outer.rank = last;
  }
  const int64_t runs = outer.count();
  for (int64_t i = 0; i < runs; ++i) move(outer.offset(i), i * length, length, stride);
}

}  // namespace

const void* RowFormat::fetch(const char* base, const Axes& row, void* buffer) const {
  if (in_place(row)) return base;
  for_each_run(row, [&](int64_t offset, int64_t number, int64_t length, int64_t stride) {
    read(static_cast<char*>(buffer) + number * compute_size, 1, base + offset * size, stride, length);
  });
  return buffer;
}

void RowFormat::put(char* base, const Axes& row, const void* values) const {
  for_each_run(row, [&](int64_t offset, int64_t number, int64_t length, int64_t stride) {
    write(base + offset * size, stride, static_cast<const char*>(values) + number * compute_size, 1, length);
  });
}

}  // namespace tenon::provider::cpu
