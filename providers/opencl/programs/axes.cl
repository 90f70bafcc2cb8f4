// The parameters of kinds along axes. The walked axes span a row; the kept axes number the rows. A group of LANES
// work-items shares a row, or one work-item computes it alone (kernels named _item).

#define LANES 64

// Mirrors RowParameters of kernels/axes.h.
struct row_parameters {
  ulong rows;
  ulong length;
  ulong parts;        // parts per row
  ulong part_length;
  ulong dst;          // offsets of first elements
  ulong src;
  ulong kept_dims[8];
  ulong kept_dst[8];
  ulong kept_src[8];
  ulong walked_dims[8];
  ulong walked_dst[8];
  ulong walked_src[8];
  int kept_rank;
  int walked_rank;
  int op;
  int flag;
};

// The offsets of element `index` of a space of `rank` dims, in two operands.
static inline void ep_place(const ulong* dims, const ulong* first_strides, const ulong* second_strides, int rank,
                            ulong index, ulong* first, ulong* second) {
  if (index <= 0xffffffffu) {
    uint rest = (uint)index;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const uint quotient = axis == 0 ? 0u : rest / (uint)dims[axis];
      const uint position = rest - quotient * (uint)dims[axis];
      rest = quotient;
      *first += position * first_strides[axis];
      *second += position * second_strides[axis];
    }
    return;
  }
  ulong rest = index;
  for (int axis = rank - 1; axis >= 0; --axis) {
    const ulong quotient = axis == 0 ? 0ul : rest / dims[axis];
    const ulong position = rest - quotient * dims[axis];
    rest = quotient;
    *first += position * first_strides[axis];
    *second += position * second_strides[axis];
  }
}
static inline void place_row(const struct row_parameters* p, ulong row, ulong* dst, ulong* src) {
  *dst = p->dst;
  *src = p->src;
  ep_place(p->kept_dims, p->kept_dst, p->kept_src, p->kept_rank, row, dst, src);
}
static inline ulong src_in_row(const struct row_parameters* p, ulong index) {
  if (p->walked_rank == 1) return index * p->walked_src[0];
  ulong ignored = 0;
  ulong at = 0;
  ep_place(p->walked_dims, p->walked_dst, p->walked_src, p->walked_rank, index, &ignored, &at);
  return at;
}
static inline ulong dst_in_row(const struct row_parameters* p, ulong index) {
  if (p->walked_rank == 1) return index * p->walked_dst[0];
  ulong ignored = 0;
  ulong at = 0;
  ep_place(p->walked_dims, p->walked_dst, p->walked_src, p->walked_rank, index, &at, &ignored);
  return at;
}
