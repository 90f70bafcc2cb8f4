#include "primitives/simplify/simplify.h"

#include <algorithm>
#include <limits>

namespace tenon::simplify {
namespace {

constexpr int32_t max_rank = 8;

// Shared by the folds. Each axis belongs to a group. Only neighbours of one group are merged, and axes of group `alone`
// never are. Axis 0 of the arrays is the outermost.
struct Folding {
  int32_t rank;
  int64_t* dims;
  int64_t* const* strides;
  int32_t operand_count;
  uint8_t groups[max_rank];

  static constexpr uint8_t alone = 255;

  void move(int32_t to, int32_t from) {
    if (to == from) return;
    dims[to] = dims[from];
    groups[to] = groups[from];
    for (int32_t i = 0; i < operand_count; ++i) strides[i][to] = strides[i][from];
  }

  void swap(int32_t a, int32_t b) {
    std::swap(dims[a], dims[b]);
    std::swap(groups[a], groups[b]);
    for (int32_t i = 0; i < operand_count; ++i) std::swap(strides[i][a], strides[i][b]);
  }

  void drop_ones() {
    int32_t kept = 0;
    for (int32_t axis = 0; axis < rank; ++axis) {
      if (dims[axis] != 1 || groups[axis] == alone) move(kept++, axis);
    }
    rank = kept;
  }

  bool merges(int32_t outer, int32_t inner) const {
    if (groups[outer] != groups[inner] || groups[outer] == alone) return false;
    for (int32_t i = 0; i < operand_count; ++i) {
      if (strides[i][outer] != strides[i][inner] * dims[inner]) return false;
    }
    return true;
  }

  void merge() {
    if (rank == 0) return;
    int32_t last = 0;
    for (int32_t axis = 1; axis < rank; ++axis) {
      if (merges(last, axis)) {
        const int64_t length = dims[last] * dims[axis];
        move(last, axis);
        dims[last] = length;
      } else {
        move(++last, axis);
      }
    }
    rank = last + 1;
  }

  // Sorts the axes by the strides of `operand`, the largest first and broadcast axes outermost. The sort is stable, and
  // the axes are usually in order already.
  void sort_by(int32_t operand) {
    const auto key = [&](int32_t axis) {
      const int64_t stride = strides[operand][axis];
      return stride == 0 ? std::numeric_limits<int64_t>::max() : stride;
    };
    for (int32_t axis = 1; axis < rank; ++axis) {
      for (int32_t at = axis; at > 0 && key(at - 1) < key(at); --at) swap(at - 1, at);
    }
  }

  // Inserts an axis of length 1 at position `at`.
  void insert_one(int32_t at, uint8_t group) {
    for (int32_t axis = rank; axis > at; --axis) move(axis, axis - 1);
    ++rank;
    dims[at] = 1;
    groups[at] = group;
    for (int32_t i = 0; i < operand_count; ++i) strides[i][at] = 1;
  }

  bool has(uint8_t group) const { return std::find(groups, groups + rank, group) != groups + rank; }
};

}  // namespace

int32_t fold_elementwise(int32_t rank, int64_t* dims, int64_t* const* strides, int32_t operand_count) {
  Folding fold = {rank, dims, strides, operand_count, {}};
  fold.drop_ones();
  fold.sort_by(0);
  fold.merge();
  if (fold.rank == 0) fold.insert_one(0, 0);
  return fold.rank;
}

int32_t fold_reduce(int32_t rank, int64_t* dims, uint32_t* axes, int64_t* const* strides, int32_t operand_count) {
  constexpr uint8_t kept = 0;
  constexpr uint8_t reduced = 1;
  Folding fold = {rank, dims, strides, operand_count, {}};
  for (int32_t axis = 0; axis < rank; ++axis) {
    fold.groups[axis] = *axes >> axis & 1 ? reduced : kept;
    if (fold.groups[axis] == reduced) strides[0][axis] = 0;
  }
  fold.drop_ones();
  fold.sort_by(1);
  fold.merge();
  if (!fold.has(reduced)) fold.insert_one(fold.rank, reduced);
  *axes = 0;
  for (int32_t axis = 0; axis < fold.rank; ++axis) {
    if (fold.groups[axis] != reduced) continue;
    *axes |= uint32_t{1} << axis;
    strides[0][axis] = 1;
  }
  return fold.rank;
}

int32_t fold_marked(int32_t rank, int64_t* dims, uint32_t* marked, int64_t* const* strides, int32_t operand_count) {
  Folding fold = {rank, dims, strides, operand_count, {}};
  for (int32_t axis = 0; axis < rank; ++axis) {
    fold.groups[axis] = *marked >> axis & 1 ? Folding::alone : 0;
  }
  fold.drop_ones();
  fold.merge();
  if (fold.rank == 0) fold.insert_one(0, 0);
  *marked = 0;
  for (int32_t axis = 0; axis < fold.rank; ++axis) {
    if (fold.groups[axis] == Folding::alone) *marked |= uint32_t{1} << axis;
  }
  return fold.rank;
}

int32_t fold_halves(int32_t rank, int64_t* dims, int32_t* axis, int64_t* const* strides, int32_t operand_count) {
  constexpr uint8_t inner = 1;
  Folding fold = {rank, dims, strides, operand_count, {}};
  for (int32_t i = *axis; i < rank; ++i) fold.groups[i] = inner;
  fold.drop_ones();
  fold.merge();
  if (!fold.has(inner)) fold.insert_one(fold.rank, inner);
  *axis = static_cast<int32_t>(std::find(fold.groups, fold.groups + fold.rank, inner) - fold.groups);
  return fold.rank;
}

int32_t fold_batch(int32_t rank, int64_t* dims, int64_t* const* strides, int32_t operand_count) {
  Folding fold = {rank, dims, strides, operand_count, {}};
  fold.groups[rank - 2] = fold.groups[rank - 1] = Folding::alone;
  fold.drop_ones();
  fold.merge();
  return fold.rank;
}

void fold_gather(GatherFold* gather) {
  const int32_t before = gather->axis;
  const int32_t after = gather->src_rank - before - 1;
  const int32_t middle = gather->indices_rank;
  int64_t* src = gather->src_strides;
  int64_t* dst = gather->dst_strides;

  int64_t outer_dims[max_rank], outer_src[max_rank], outer_dst[max_rank];
  std::copy_n(gather->src_dims, before, outer_dims);
  std::copy_n(src, before, outer_src);
  std::copy_n(dst, before, outer_dst);
  int64_t* const outer[] = {outer_dst, outer_src};
  Folding fold_outer = {before, outer_dims, outer, 2, {}};
  fold_outer.drop_ones();
  fold_outer.merge();

  int64_t middle_dst[max_rank];
  std::copy_n(dst + before, middle, middle_dst);
  int64_t* const indices[] = {middle_dst, gather->indices_strides};
  Folding fold_indices = {middle, gather->indices_dims, indices, 2, {}};
  fold_indices.drop_ones();
  fold_indices.merge();
  if (fold_indices.rank == 0) fold_indices.insert_one(0, 0);

  int64_t inner_dims[max_rank], inner_src[max_rank], inner_dst[max_rank];
  std::copy_n(gather->src_dims + before + 1, after, inner_dims);
  std::copy_n(src + before + 1, after, inner_src);
  std::copy_n(dst + before + middle, after, inner_dst);
  int64_t* const inner[] = {inner_dst, inner_src};
  Folding fold_inner = {after, inner_dims, inner, 2, {}};
  fold_inner.drop_ones();
  fold_inner.merge();

  const int64_t axis_dim = gather->src_dims[before];
  const int64_t axis_stride = src[before];
  int64_t* dims_end = std::copy_n(outer_dims, fold_outer.rank, gather->src_dims);
  int64_t* src_end = std::copy_n(outer_src, fold_outer.rank, src);
  *dims_end++ = axis_dim;
  *src_end++ = axis_stride;
  std::copy_n(inner_dims, fold_inner.rank, dims_end);
  std::copy_n(inner_src, fold_inner.rank, src_end);
  int64_t* dst_end = std::copy_n(outer_dst, fold_outer.rank, dst);
  dst_end = std::copy_n(middle_dst, fold_indices.rank, dst_end);
  std::copy_n(inner_dst, fold_inner.rank, dst_end);
  gather->axis = fold_outer.rank;
  gather->indices_rank = fold_indices.rank;
  gather->src_rank = fold_outer.rank + 1 + fold_inner.rank;
}

}  // namespace tenon::simplify
