#version 460
#extension GL_GOOGLE_include_directive : require
// softmax and its logarithm: 2^lane_bits invocations share a row. A row of up to 12 elements per lane is read once and kept in
// shared memory; a longer one is read three times.
#include "class.glsl"
#include "prelude.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const int THREADS = 256;
layout(constant_id = 2) const int LOGARITHM = 0;
layout(constant_id = 3) const int DTYPE = 12;
layout(constant_id = 6) const int KEPT = 1;  // the row is kept in shared memory

#include "rows.glsl"

const int PER_LANE = 12;
shared float meeting[THREADS];
shared float kept[THREADS * PER_LANE];

float element(uint src, uint stride, uint i) {
  const uint slot = (i >> push.lane_bits) * uint(THREADS) + gl_LocalInvocationID.x;  // lane's own: i is its lane modulo lanes()
  return KEPT != 0 ? kept[slot] : load(push.src, src + i * stride, DTYPE);
}

void main() {
  const uint me = gl_LocalInvocationID.x;
  const uint lane = my_lane();
  const uint number = my_row();
  const bool inside = number < push.values;
  Rows shape = Rows(push.shape);
  const uint stride = shape.walked_src[0];
  uint dst = 0u;
  uint src = 0u;
  if (inside) place_row(shape, number, dst, src);
  const uint length = inside ? push.row_length : 0u;

  float greatest = ep_lowest();
  for (uint i = lane; i < length; i += lanes()) {
    const float x = load(push.src, src + i * stride, DTYPE);
    if (KEPT != 0) kept[(i >> push.lane_bits) * uint(THREADS) + me] = x;
    greatest = ep_max(x, greatest);
  }
  meeting[me] = greatest;
  for (uint step = lanes() / 2u; step > 0u; step /= 2u) {
    barrier();
    if (lane < step) {
      greatest = ep_max(greatest, meeting[me + step]);
      meeting[me] = greatest;
    }
  }
  barrier();
  greatest = meeting[me - lane];
  barrier();

  precise float total = 0.0;
  for (uint i = lane; i < length; i += lanes()) {
    const float x = ep_sub(element(src, stride, i), greatest);
    const float e = ep_exp(x);
    if (KEPT != 0) kept[(i >> push.lane_bits) * uint(THREADS) + me] = LOGARITHM != 0 ? x : e;
    total = total + e;
  }
  meeting[me] = total;
  for (uint step = lanes() / 2u; step > 0u; step /= 2u) {
    barrier();
    if (lane < step) {
      total = total + meeting[me + step];
      meeting[me] = total;
    }
  }
  barrier();
  total = meeting[me - lane];

  const float shift = LOGARITHM != 0 ? ep_log(total) : 0.0;
  for (uint i = lane; i < length; i += lanes()) {
    float x = element(src, stride, i);
    if (KEPT == 0) {
      x = ep_sub(x, greatest);
      if (LOGARITHM == 0) x = ep_exp(x);
    }
    store(push.dst, dst + i * shape.walked_dst[0], DTYPE, LOGARITHM != 0 ? ep_sub(x, shift) : x / total);
  }
}
