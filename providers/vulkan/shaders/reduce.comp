#version 460
#extension GL_GOOGLE_include_directive : require
// reduce: 2^lane_bits invocations share one value. Each takes every 2^lane_bits-th block, and shared memory combines
// their values, so the size of a subgroup does not matter. The shape alone decides if a long reduction has parts: then
// the first dispatch (LAST 0) writes the value of each part, and the second (FIRST 0) combines these values.
#include "class.glsl"
#include "sdk/provider/glsl/prelude.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const int THREADS = 256;
layout(constant_id = 2) const int OP = 1;
layout(constant_id = 3) const int SRC_DTYPE = 12;
layout(constant_id = 4) const int DST_DTYPE = 12;
layout(constant_id = 6) const int FIRST = 1;  // apply map to the elements of the source
layout(constant_id = 7) const int LAST = 1;   // apply finish to the values

#include "reduce_row.glsl"
#include "rows.glsl"

shared T meeting[THREADS];

void main() {
  const uint lane = my_lane();
  const uint value_number = my_row();
  const bool inside = value_number < push.values * push.parts;
  const uint number = value_number / push.parts;
  const uint part = value_number - number * push.parts;
  Rows shape = Rows(push.shape);
  uint dst = 0u;
  uint src = 0u;
  T value = reduce_init();
  if (inside) {
    place_row(shape, number, dst, src);
    const uint end = min((part + 1u) * push.part_length, push.row_length);
    for (uint i = part * push.part_length + lane * uint(BLOCK); i < end; i += lanes() * uint(BLOCK)) {
      const uvec4 block = load_block(shape, src, i, end);
      for (int k = 0; k < BLOCK; ++k) {
        const T x = decode(element_of(block, k, SRC_SIZE), SRC_DTYPE);
        if (i + uint(k) < end) value = reduce_combine(value, FIRST != 0 ? reduce_map(x) : x);
      }
    }
  }
  if (push.lane_bits != 0u) {
    meeting[gl_LocalInvocationID.x] = value;
    for (uint step = lanes() / 2u; step > 0u; step /= 2u) {
      barrier();
      if (lane < step) {
        value = reduce_combine(value, meeting[gl_LocalInvocationID.x + step]);
        meeting[gl_LocalInvocationID.x] = value;
      }
    }
  }
  if (!inside || lane != 0u) return;
  if (LAST != 0) {
    store(push.dst, dst, DST_DTYPE, reduce_finish(value, T(push.count)));
  } else {
    store(push.dst, value_number, DST_DTYPE, value);
  }
}
