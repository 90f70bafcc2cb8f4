// Device memory by address. A device has no pointers here: an address is a uvec2 that the host computed, and an element
// is `address[index]`, index below 2^31 bytes away (the host cuts larger launches). Elements are moved as bits; what
// they mean is said by the class (class.glsl).
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#ifdef NARROW
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#endif

#define EP_DTYPE(name, id, bits, type_class) const int DTYPE_##name = id;
#include "ep_api/dtypes.def"
#undef EP_DTYPE

layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Words { uint v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Pairs { uvec2 v[]; };
#ifdef NARROW
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer Halves { uint16_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 1) buffer Bytes { uint8_t v[]; };
#endif

// Elements of at most 4 bytes, zero-extended.
uint load_bits(uvec2 base, uint index, const int size) {
#ifdef NARROW
  if (size == 1) return uint(Bytes(base).v[index]);
  if (size == 2) return uint(Halves(base).v[index]);
#endif
  return Words(base).v[index];
}
void store_bits(uvec2 base, uint index, const int size, uint bits) {
#ifdef NARROW
  if (size == 1) {
    Bytes(base).v[index] = uint8_t(bits);
    return;
  }
  if (size == 2) {
    Halves(base).v[index] = uint16_t(bits);
    return;
  }
#endif
  Words(base).v[index] = bits;
}

// Bytes of an element.
int size_of(const int dtype) {
  switch (dtype) {
#define EP_DTYPE(name, id, bits, type_class) case id: return bits / 8;
#include "ep_api/dtypes.def"
#undef EP_DTYPE
  }
  return 4;
}

// One that a kernel met: written by whoever comes first, read by the host (stream_take_fault). The slot was zero.
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer FaultSlot {
  uint taken;
  uint code;
  uvec2 value;
};
