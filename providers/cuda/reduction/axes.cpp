#include "providers/cuda/reduction/axes.h"

#include <algorithm>

#include "providers/cuda/kernels/element.h"

namespace tenon::provider::cuda {
namespace {

void swap_axes(AxisSet* axes, int32_t a, int32_t b) {
  std::swap(axes->dims[a], axes->dims[b]);
  std::swap(axes->src[a], axes->src[b]);
  std::swap(axes->dst[a], axes->dst[b]);
}

}  // namespace

void merge_axes(AxisSet* axes) {
  int32_t last = 0;
  for (int32_t axis = 1; axis < axes->rank; ++axis) {
    const int64_t dim = axes->dims[axis];
    if (axes->src[last] == axes->src[axis] * dim && axes->dst[last] == axes->dst[axis] * dim) {
      axes->dims[last] *= dim;
    } else {
      axes->dims[++last] = dim;
    }
    axes->src[last] = axes->src[axis];
    axes->dst[last] = axes->dst[axis];
  }
  axes->rank = last + 1;
}

AxisSet axes_of(const OperandShape& src, const OperandShape& dst, uint32_t mask, bool inside) {
  AxisSet axes{};
  axes.count = 1;
  for (int32_t axis = 0; axis < src.rank; ++axis) {
    if ((((mask >> axis) & 1U) != 0) != inside || src.dims[axis] == 1) continue;
    const int32_t to = axes.rank++;
    axes.dims[to] = src.dims[axis];
    axes.src[to] = src.strides[axis];
    axes.dst[to] = dst.dims[axis] == 1 ? 0 : dst.strides[axis];
    axes.count *= src.dims[axis];
    for (int32_t i = to; i > 0 && axes.src[i] > axes.src[i - 1]; --i) swap_axes(&axes, i, i - 1);
  }
  if (axes.rank == 0) {
    axes.rank = 1;
    axes.dims[0] = 1;
    return axes;
  }
  merge_axes(&axes);
  return axes;
}

AxisSet row_major_axes(const OperandShape& shape) {
  AxisSet axes{};
  axes.count = 1;
  for (int32_t axis = 0; axis < shape.rank; ++axis) {
    if (shape.dims[axis] == 1) continue;
    axes.dims[axes.rank] = shape.dims[axis];
    axes.src[axes.rank] = axes.dst[axes.rank] = shape.strides[axis];
    axes.count *= shape.dims[axis];
    ++axes.rank;
  }
  if (axes.rank == 0) {
    axes.rank = 1;
    axes.dims[0] = 1;
    axes.src[0] = axes.dst[0] = 1;
    return axes;
  }
  merge_axes(&axes);
  return axes;
}

bool rows_are_aligned(uint64_t address, int64_t size, const AxisSet& axes, const int64_t* strides) {
  const int64_t alignment = pack_alignment(size);
  if (address % static_cast<uint64_t>(alignment) != 0) return false;
  for (int32_t axis = 0; axis < axes.rank; ++axis) {
    if (axes.dims[axis] > 1 && strides[axis] * size % alignment != 0) return false;
  }
  return true;
}

const char* team_name(Team team) {
  switch (team) {
    case Team::SOLO: return "solo";
    case Team::WARP: return "warp";
    default: return "block";
  }
}

int64_t teams_per_block(Team team) {
  switch (team) {
    case Team::SOLO: return row_block;
    case Team::WARP: return row_block / row_warp;
    default: return 1;
  }
}

}  // namespace tenon::provider::cuda
