// Folding dims before a provider sees them: fewer, longer axes, so that one kernel serves many shapes and one cache
// entry many calls. A fold never moves data: every element of every operand keeps its address and its partners.
//
// All functions work in place, allocate nothing, and return the new rank, 1 to 8. `dims` holds `rank` dims, none 0;
// `strides` points to one array per operand of `rank` strides in elements, >= 0. Arrays have room for one axis at
// least; entries from the new rank on are left undefined. Rank 0 comes back as one axis of length 1. An axis of length
// 1 that a fold makes has stride 1 in every operand, so that equal work has equal descriptors.
#pragma once

#include <cstdint>

namespace tenon::simplify {

// Folds operands that share `dims` (stride 0 where an operand repeats). Operand 0 is the output. Drops axes of 1,
// orders axes by the output's strides, largest first, and merges neighbours that every operand walks as one.
int32_t fold_elementwise(int32_t rank, int64_t* dims, int64_t* const* strides, int32_t operand_count);

// Folds a reduction of `dims` (the source's) over the bit mask `*axes`. strides[0] are the destination's, strides[1]
// the source's. The destination's strides at reduced axes do not matter and come back as 1. Reduced axes merge with
// reduced ones and kept with kept. Axes are ordered by the source's strides. At least one axis stays reduced. `*axes`
// becomes the new mask.
int32_t fold_reduce(int32_t rank, int64_t* dims, uint32_t* axes, int64_t* const* strides, int32_t operand_count);

// The axes of bit mask `*marked` stay as they are, each alone, even axes of length 1. Operands may have other lengths
// along them (softmax, arg-reduce, concat, split, pad, batch norm, gather of elements). The other axes are
// dropped or merged with their neighbours; their order is kept. `*marked` becomes the new mask.
int32_t fold_marked(int32_t rank, int64_t* dims, uint32_t* marked, int64_t* const* strides, int32_t operand_count);

// Axes before `*axis` fold among themselves, and axes from `*axis` on fold among themselves; at least one of the latter
// stays (layer norm). An operand that has only one of the two groups gives 0 as its strides along the other.
int32_t fold_halves(int32_t rank, int64_t* dims, int32_t* axis, int64_t* const* strides, int32_t operand_count);

// The last two axes stay; the batch axes before them are dropped or merged (matmul). `dims` are
// [..., m, n]; an operand's own last two lengths may differ from them. The result has rank 2 at least, as the input
// must.
int32_t fold_batch(int32_t rank, int64_t* dims, int64_t* const* strides, int32_t operand_count);

// Folds a gather of slices. In: dims and strides of SRC and INDICES, strides of DST (rank = src_rank - 1 +
// indices_rank), and the axis. Out: the same, folded. Three groups of axes fold, each by itself: those of SRC before
// `axis`, those of INDICES, and those of SRC after `axis`. INDICES keeps one axis at least.
struct GatherFold {
  int32_t src_rank;
  int32_t indices_rank;
  int32_t axis;
  int64_t src_dims[8], src_strides[8];
  int64_t indices_dims[8], indices_strides[8];
  int64_t dst_strides[8];
};
void fold_gather(GatherFold* fold);

}  // namespace tenon::simplify
