// Split: the axes of a reduction.
#pragma once

#include "providers/cpu/rows/row.h"

namespace tenon::provider::cpu {

// The axes of a launch: kept axes of both operands, and reduced axes of the source.
struct Split {
  Axes kept_dst, kept_src, reduced;

  // Merges adjacent axes that both operands walk alike.
  void fold() {
    Axes dst, src, less;
    for (int32_t axis = 0; axis < kept_src.rank; ++axis) {
      const int64_t dim = kept_src.dims[axis];
      if (dim == 1) continue;
      const bool joins = src.rank > 0 && src.strides[src.rank - 1] == dim * kept_src.strides[axis] &&
                         dst.strides[dst.rank - 1] == dim * kept_dst.strides[axis];
      join(&src, joins, dim, kept_src.strides[axis]);
      join(&dst, joins, dim, kept_dst.strides[axis]);
    }
    for (int32_t axis = 0; axis < reduced.rank; ++axis) {
      const int64_t dim = reduced.dims[axis];
      if (dim == 1) continue;
      join(&less, less.rank > 0 && less.strides[less.rank - 1] == dim * reduced.strides[axis], dim,
           reduced.strides[axis]);
    }
    if (less.rank == 0) less.add(1, 1);
    kept_dst = dst;
    kept_src = src;
    reduced = less;
  }

  static void join(Axes* axes, bool joins, int64_t dim, int64_t stride) {
    if (!joins) return axes->add(dim, stride);
    axes->dims[axes->rank - 1] *= dim;
    axes->strides[axes->rank - 1] = stride;
  }
};

}  // namespace tenon::provider::cpu
