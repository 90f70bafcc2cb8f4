#version 460
#extension GL_GOOGLE_include_directive : require
// arg_reduce: like reduce, with a position for each value. Positions are written as 64 bits.
#include "class.glsl"
#include "sdk/provider/glsl/prelude.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const int THREADS = 256;
layout(constant_id = 2) const int MAXIMUM = 1;
layout(constant_id = 3) const int SRC_DTYPE = 12;
layout(constant_id = 4) const int LAST_OF_EQUALS = 0;

#include "rows.glsl"

shared T best_value[THREADS];
shared uint best_place[THREADS];

// True if x at position i replaces y at position k. NaN replaces every number; among equal elements the first or the
// last wins.
bool better(T x, uint i, T y, uint k) {
  const bool x_nan = ep_isnan(x);
  const bool y_nan = ep_isnan(y);
  if (x_nan != y_nan) return x_nan;
  if (!x_nan && x != y) return MAXIMUM != 0 ? x > y : x < y;
  return LAST_OF_EQUALS != 0 ? i > k : i < k;
}

void main() {
  const uint me = gl_LocalInvocationID.x;
  const uint lane = my_lane();
  const uint number = my_row();
  const bool inside = number < push.values;
  Rows shape = Rows(push.shape);
  uint dst = 0u;
  uint src = 0u;
  T value = T(0);
  uint place = 0xffffffffu;  // no position
  if (inside) {
    place_row(shape, number, dst, src);
    for (uint first = lane * uint(BLOCK); first < push.row_length; first += lanes() * uint(BLOCK)) {
      const uvec4 block = load_block(shape, src, first, push.row_length);
      for (int k = 0; k < BLOCK; ++k) {
        const uint i = first + uint(k);
        const T x = decode(element_of(block, k, SRC_SIZE), SRC_DTYPE);
        if (i < push.row_length && (place == 0xffffffffu || better(x, i, value, place))) {
          value = x;
          place = i;
        }
      }
    }
  }
  best_value[me] = value;
  best_place[me] = place;
  for (uint step = lanes() / 2u; step > 0u; step /= 2u) {
    barrier();
    if (lane < step) {
      const T x = best_value[me + step];
      const uint i = best_place[me + step];
      if (i != 0xffffffffu && (place == 0xffffffffu || better(x, i, value, place))) {
        value = x;
        place = i;
        best_value[me] = value;
        best_place[me] = place;
      }
    }
  }
  if (inside && lane == 0u) Pairs(push.dst).v[dst] = uvec2(place, 0u);
}
