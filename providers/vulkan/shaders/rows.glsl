// The parameters of kinds along axes. The walked axes span a row; the kept axes number the rows.
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer Rows {
  uint kept_rank;
  uint walked_rank;
  uint kept_dims[8];
  uint kept_dst[8];
  uint kept_src[8];
  uint walked_dims[8];
  uint walked_src[8];
  uint walked_dst[8];
};

layout(push_constant, scalar) uniform Push {
  uvec2 dst;
  uvec2 src;
  uvec2 shape;
  uint values;       // number of rows
  uint row_length;   // elements of a row that this dispatch reads
  uint count;        // elements of a row in the operand
  uint parts;        // parts per row
  uint part_length;
  uint lane_bits;    // 2^lane_bits invocations share a row
  uint aligned;      // 1: rows begin at multiples of a block
} push;

// An invocation takes every lanes()-th block of a row. A block is one element, or 16 bytes if rows are contiguous. An
// invocation takes the same elements even if one access cannot read a block, so the result is the same.
layout(constant_id = 8) const int BLOCK = 1;
layout(constant_id = 9) const int SRC_SIZE = 4;  // bytes per element

uint lanes() { return 1u << push.lane_bits; }
uint my_lane() { return gl_LocalInvocationID.x & (lanes() - 1u); }
// The number of this invocation's row in the dispatch.
uint my_row() {
  const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  // A row number fits 32 bits, but an invocation number may not.
  return group * (gl_WorkGroupSize.x >> push.lane_bits) + (gl_LocalInvocationID.x >> push.lane_bits);
}

void place_row(Rows shape, uint number, out uint dst, out uint src) {
  dst = 0u;
  src = 0u;
  for (int axis = int(shape.kept_rank) - 1; axis >= 0; --axis) {
    const uint quotient = number / shape.kept_dims[axis];
    const uint position = number - quotient * shape.kept_dims[axis];
    number = quotient;
    dst += position * shape.kept_dst[axis];
    src += position * shape.kept_src[axis];
  }
}
uint place_in_row(Rows shape, uint index) {
  if (shape.walked_rank == 1u) return index * shape.walked_src[0];
  uint at = 0u;
  for (int axis = int(shape.walked_rank) - 1; axis >= 0; --axis) {
    const uint quotient = index / shape.walked_dims[axis];
    at += (index - quotient * shape.walked_dims[axis]) * shape.walked_src[axis];
    index = quotient;
  }
  return at;
}

// Loads elements `first` to `end` (at most a block) of the row that begins at `row`, as a pack.
uvec4 load_block(Rows shape, uint row, uint first, uint end) {
  uvec4 block = uvec4(0u);
  switch (BLOCK) {  // kernels/specialize keeps one case
    case 1:
      put_element(block, 0, SRC_SIZE, load_element(push.src, row + place_in_row(shape, first), SRC_SIZE));
      break;
    default:
      if (push.aligned != 0u && first + uint(BLOCK) <= end) {
        block = load_pack(push.src, (row + first) / uint(BLOCK), BLOCK * SRC_SIZE);
      } else {
        for (int k = 0; k < BLOCK; ++k) {
          const uint i = first + uint(k);
          if (i < end) put_element(block, k, SRC_SIZE, load_element(push.src, row + i, SRC_SIZE));
        }
      }
  }
  return block;
}
// Stores a block of dst, whose elements have the size of src elements.
void store_block(Rows shape, uint row, uint first, uint end, uvec4 block) {
  switch (BLOCK) {
    case 1:
      store_element(push.dst, row + first * shape.walked_dst[0], SRC_SIZE, element_of(block, 0, SRC_SIZE));
      break;
    default:
      if (push.aligned != 0u && first + uint(BLOCK) <= end) {
        store_pack(push.dst, (row + first) / uint(BLOCK), BLOCK * SRC_SIZE, block);
      } else {
        for (int k = 0; k < BLOCK; ++k) {
          const uint i = first + uint(k);
          if (i < end) store_element(push.dst, row + i, SRC_SIZE, element_of(block, k, SRC_SIZE));
        }
      }
  }
}
