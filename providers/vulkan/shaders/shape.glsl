// The parameters of a launch over elements, and the offset of element `index` in each operand.

// Dims of a strided launch, and strides of dst and of the inputs.
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer Shape {
  uint rank;
  uint dims[8];
  uint strides[4][8];
};

layout(push_constant, scalar) uniform Push {
  uvec2 dst;
  uvec2 src[3];
  uvec2 shape;
  uvec2 fault;
  uvec2 scalars[3];
  uint count;
  uint packs;
} push;

layout(constant_id = 5) const int SCALARS = 0;   // bit i: input i is launch scalar i
layout(constant_id = 6) const int STRIDED = 0;   // 0: every operand is contiguous or repeated
layout(constant_id = 8) const int PACK = 1;      // elements per pack
layout(constant_id = 9) const int REPEATED = 0;  // bit i: input i is a single element, used for all results; only if
                                                 // not STRIDED
layout(constant_id = 10) const int DST_SIZE = 4;  // bytes per element
layout(constant_id = 11) const int SRC_SIZE = 4;  // bytes per element of the inputs

struct Places {
  uint of[4];  // offsets of dst and of the inputs
};

Places places_of(uint index, const int inputs) {
  if (STRIDED == 0) return Places(uint[4](index, index, index, index));
  Places at = Places(uint[4](0u, 0u, 0u, 0u));
  Shape shape = Shape(push.shape);
  for (int axis = int(shape.rank) - 1; axis >= 0; --axis) {
    const uint quotient = index / shape.dims[axis];
    const uint position = index - quotient * shape.dims[axis];
    index = quotient;
    for (int i = 0; i <= inputs; ++i) at.of[i] += position * shape.strides[i][axis];
  }
  return at;
}
