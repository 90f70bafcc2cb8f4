// Device memory by address. An address is a uvec2 that the host computed; shaders have no pointers here. An element is
// `address[index]`, less than 2^31 bytes away (the host cuts larger launches). Elements are moved as bits; class.glsl
// interprets them.
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
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer Quads { uvec4 v[]; };
#ifdef NARROW
layout(buffer_reference, scalar, buffer_reference_align = 2) buffer Halves { uint16_t v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 1) buffer Bytes { uint8_t v[]; };
#endif

// Load and store elements of `size` bytes, zero-extended. Size 8 only in modules with WIDE.
uvec2 load_element(uvec2 base, uint index, const int size) {
#ifdef NARROW
  if (size == 1) return uvec2(Bytes(base).v[index], 0u);
  if (size == 2) return uvec2(Halves(base).v[index], 0u);
#endif
#ifdef WIDE
  if (size == 8) return Pairs(base).v[index];
#endif
  return uvec2(Words(base).v[index], 0u);
}
void store_element(uvec2 base, uint index, const int size, uvec2 bits) {
#ifdef NARROW
  if (size == 1) {
    Bytes(base).v[index] = uint8_t(bits.x);
    return;
  }
  if (size == 2) {
    Halves(base).v[index] = uint16_t(bits.x);
    return;
  }
#endif
#ifdef WIDE
  if (size == 8) {
    Pairs(base).v[index] = bits;
    return;
  }
#endif
  Words(base).v[index] = bits.x;
}

// A pack: consecutive elements that one access moves, 4, 8 or 16 bytes in total, at a multiple of that size. load_pack
// loads pack `number` of an operand. Element 0 of a pack comes first. A pack must be 0 before elements are put into it.
uvec4 load_pack(uvec2 base, uint number, const int bytes) {
  if (bytes == 16) return Quads(base).v[number];
  if (bytes == 8) return uvec4(Pairs(base).v[number], 0u, 0u);
  return uvec4(Words(base).v[number], 0u, 0u, 0u);
}
void store_pack(uvec2 base, uint number, const int bytes, uvec4 pack) {
  if (bytes == 16) {
    Quads(base).v[number] = pack;
  } else if (bytes == 8) {
    Pairs(base).v[number] = pack.xy;
  } else {
    Words(base).v[number] = pack.x;
  }
}
uvec2 element_of(uvec4 pack, int k, const int size) {
#ifdef NARROW
  if (size < 4) return uvec2(bitfieldExtract(pack[k * size >> 2], (k * size & 3) * 8, size * 8), 0u);
#endif
#ifdef WIDE
  if (size == 8) return k == 0 ? pack.xy : pack.zw;
#endif
  return uvec2(pack[k], 0u);
}
void put_element(inout uvec4 pack, int k, const int size, uvec2 bits) {
#ifdef NARROW
  if (size < 4) {
    pack[k * size >> 2] = bitfieldInsert(pack[k * size >> 2], bits.x, (k * size & 3) * 8, size * 8);
    return;
  }
#endif
#ifdef WIDE
  if (size == 8) {
    pack = k == 0 ? uvec4(bits, pack.zw) : uvec4(pack.xy, bits);
    return;
  }
#endif
  pack[k] = bits.x;
}

// The bytes per element.
int size_of(const int dtype) {
  switch (dtype) {
#define EP_DTYPE(name, id, bits, type_class) case id: return bits / 8;
#include "ep_api/dtypes.def"
#undef EP_DTYPE
  }
  return 4;
}

// The fault of a launch. The first invocation with a fault writes it; the host reads it (stream_take_fault). The slot
// is zero before.
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer FaultSlot {
  uint taken;
  uint code;
  uvec2 value;
};
