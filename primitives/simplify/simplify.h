// Folds dims before a provider sees them: fewer, longer axes, so that one kernel serves many shapes and one cache entry
// serves many calls. A fold never moves data: every element keeps its address, and the elements of the operands that
// belong together still do.
//
// All functions work in place, allocate nothing, and return the new rank, 1 to 8. `dims` holds `rank` dims, none of
// them 0; `strides` points to one array per operand of `rank` strides in elements, >= 0. Arrays have room for at least
// one axis; entries from the new rank on are undefined. Rank 0 becomes one axis of length 1. An axis of length 1 that a
// fold makes has stride 1 in every operand, so that equal work has equal descriptors.
#pragma once

#include <cstdint>

namespace tenon::simplify {

// Folds operands that share `dims` (stride 0 where an operand is broadcast). Operand 0 is the output. Drops axes of
// length 1, sorts axes by the output's strides, largest first, and merges neighbours that form one axis in every
// operand.
int32_t fold_elementwise(int32_t rank, int64_t* dims, int64_t* const* strides, int32_t operand_count);

// Folds a reduction of `dims` (the source's) over the bit mask `*axes`. strides[0] are the destination's strides,
// strides[1] the source's. The destination's strides along reduced axes are ignored and become 1. Reduced axes are
// merged with reduced axes, kept axes with kept axes. Axes are sorted by the source's strides. At least one axis stays
// reduced. `*axes` becomes the new mask.
int32_t fold_reduce(int32_t rank, int64_t* dims, uint32_t* axes, int64_t* const* strides, int32_t operand_count);

// Keeps each axis of bit mask `*marked` unchanged and separate, even if its length is 1. Along these axes operands may
// differ in length (softmax, arg-reduce, concat, split, pad, batch norm, gather of elements). The other axes are
// dropped or merged with their neighbours; their order is kept. `*marked` becomes the new mask.
int32_t fold_marked(int32_t rank, int64_t* dims, uint32_t* marked, int64_t* const* strides, int32_t operand_count);

// Folds the axes before `*axis` and the axes from `*axis` on separately; at least one of the latter stays (layer norm).
// An operand that has only one of the two groups passes strides of 0 along the other.
int32_t fold_halves(int32_t rank, int64_t* dims, int32_t* axis, int64_t* const* strides, int32_t operand_count);

// Keeps the last two axes; the batch axes before them are dropped or merged (matmul). `dims` is [..., m, n]; the last
// two lengths of an operand may differ from it. Both input and result have at least rank 2.
int32_t fold_batch(int32_t rank, int64_t* dims, int64_t* const* strides, int32_t operand_count);

// Folds a gather of slices. In: dims and strides of SRC and INDICES, strides of DST (rank = src_rank - 1 +
// indices_rank), and the axis. Out: the same, folded. Three groups of axes are folded separately: the axes of SRC
// before `axis`, the axes of INDICES, and the axes of SRC after `axis`. INDICES keeps at least one axis.
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
