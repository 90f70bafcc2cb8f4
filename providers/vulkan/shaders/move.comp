#version 460
#extension GL_GOOGLE_include_directive : require
// Kinds that move bits: fill, copy without a cast, where. Elements have up to 4 bytes, or 8 with WIDE.
#include "memory.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 2) const int MODE = 0;  // 0: fill, 1: copy, 2: where

#include "shape.glsl"

#define INPUTS 3
#define INPUT_SIZE(i) (MODE == 2 && i == 0 ? 1 : SRC_SIZE)

uvec2 input_value(const int i, uvec2 bits) { return (SCALARS & (1 << i)) != 0 ? push.scalars[i] : bits; }

uvec2 computed(uvec2 x, uvec2 y, uvec2 z) {
  if (MODE == 2) return input_value(0, x).x != 0u ? input_value(1, y) : input_value(2, z);
  return input_value(0, x);
}

#include "elements.glsl"
