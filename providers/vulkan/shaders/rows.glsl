// Rows: what the kinds along axes are given. A row is what the walked axes span; the kept axes number the rows.
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
  uint values;       // rows
  uint row_length;   // elements of a row in this dispatch
  uint count;        // elements of a row in the operand
  uint parts;        // a row is cut into
  uint part_length;
  uint lane_bits;    // 2^lane_bits invocations share a row
} push;

uint lanes() { return 1u << push.lane_bits; }
uint my_lane() { return gl_LocalInvocationID.x & (lanes() - 1u); }
// The number of this invocation's row among those of the dispatch.
uint my_row() {
  const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  return (group * gl_WorkGroupSize.x + gl_LocalInvocationID.x) >> push.lane_bits;
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
