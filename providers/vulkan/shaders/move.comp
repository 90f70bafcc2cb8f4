#version 460
#extension GL_GOOGLE_include_directive : require
// Kinds that move bits: fill, copy without a cast, where. Elements of up to 4 bytes, or (WIDE) of 8.
#include "memory.glsl"

#ifdef WIDE
#define BITS uvec2
#else
#define BITS uint
#endif

layout(local_size_x_id = 0) in;
layout(constant_id = 2) const int MODE = 0;      // 0: fill, 1: copy, 2: where
layout(constant_id = 3) const int SIZE = 4;      // bytes of an element
layout(constant_id = 5) const int SCALARS = 0;   // bit i: input i is launch scalar i
layout(constant_id = 6) const int STRIDED = 0;
layout(constant_id = 8) const int PER_THREAD = 4;

#include "shape.glsl"

BITS load_element(uvec2 base, uint index) {
#ifdef WIDE
  return Pairs(base).v[index];
#else
  return load_bits(base, index, SIZE);
#endif
}
BITS input_at(const int i, uint index) {
#ifdef WIDE
  if ((SCALARS & (1 << i)) != 0) return push.scalars[i];
#else
  if ((SCALARS & (1 << i)) != 0) return push.scalars[i].x;
#endif
  return load_element(push.src[i], index);
}

void run(uint index) {
  const Places at = places_of(index, MODE == 0 ? 0 : (MODE == 1 ? 1 : 3));
  BITS value;
  if (MODE == 0) {
    value = input_at(0, 0u);
  } else if (MODE == 1) {
    value = load_element(push.src[0], at.of[1]);
  } else {
#ifdef NARROW
    const bool condition = (SCALARS & 1) != 0 ? push.scalars[0].x != 0u : load_bits(push.src[0], at.of[1], 1) != 0u;
#else
    const bool condition = push.scalars[0].x != 0u;
#endif
    value = condition ? input_at(1, at.of[2]) : input_at(2, at.of[3]);
  }
#ifdef WIDE
  Pairs(push.dst).v[at.of[0]] = value;
#else
  store_bits(push.dst, at.of[0], SIZE, value);
#endif
}

#include "elements.glsl"
