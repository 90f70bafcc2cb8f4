#version 460
#extension GL_GOOGLE_include_directive : require
// softmax and log-softmax of rows that softmax_held does not take: 2^lane_bits invocations share a row. A row of up to
// 12 elements per invocation is read once and kept in shared memory. A longer row is read twice: first for its maximum
// and its sum, which is rescaled whenever the maximum grows, then for the results.
#include "class.glsl"
#include "sdk/provider/glsl/prelude.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const int THREADS = 256;
layout(constant_id = 2) const int LOGARITHM = 0;
layout(constant_id = 3) const int DTYPE = 12;
layout(constant_id = 6) const int KEPT = 1;  // 1: shared memory keeps the row

#include "rows.glsl"

const int PER_LANE = 12;
shared float meeting[THREADS];
shared float kept[THREADS * PER_LANE];

// The index of element n of this invocation.
uint slot(uint n) { return n * uint(THREADS) + gl_LocalInvocationID.x; }

// exp(x - greatest); 1 if both are the same infinity.
float part_of(float x, float greatest) { return x == greatest ? 1.0 : ep_exp(ep_sub(x, greatest)); }

// The maximum of `x` over the invocations that share a row.
float meet_greatest(float x) {
  const uint me = gl_LocalInvocationID.x;
  meeting[me] = x;
  for (uint step = lanes() / 2u; step > 0u; step /= 2u) {
    barrier();
    if (my_lane() < step) {
      x = ep_max(x, meeting[me + step]);
      meeting[me] = x;
    }
  }
  barrier();
  x = meeting[me - my_lane()];
  barrier();
  return x;
}
float meet_sum(float x) {
  const uint me = gl_LocalInvocationID.x;
  meeting[me] = x;
  for (uint step = lanes() / 2u; step > 0u; step /= 2u) {
    barrier();
    if (my_lane() < step) {
      x = ep_add(x, meeting[me + step]);
      meeting[me] = x;
    }
  }
  barrier();
  return meeting[me - my_lane()];
}

void main() {
  const uint number = my_row();
  const bool inside = number < push.values;
  Rows shape = Rows(push.shape);
  uint dst = 0u;
  uint src = 0u;
  if (inside) place_row(shape, number, dst, src);
  const uint length = inside ? push.row_length : 0u;
  const uint begin = my_lane() * uint(BLOCK);
  const uint stride = lanes() * uint(BLOCK);

  float mine = ep_lowest();
  float sum = 0.0;
  uint n = 0u;
  for (uint i = begin; i < length; i += stride) {
    const uvec4 block = load_block(shape, src, i, length);
    const float before = mine;
    for (int k = 0; k < BLOCK; ++k) {
      const float x = decode(element_of(block, k, SRC_SIZE), DTYPE);
      if (i + uint(k) < length) {
        if (KEPT != 0) kept[slot(n++)] = x;
        mine = ep_max(x, mine);
      }
    }
    if (KEPT == 0) {
      if (mine != before) sum = ep_mul(sum, part_of(before, mine));
      for (int k = 0; k < BLOCK; ++k) {
        const float part = part_of(decode(element_of(block, k, SRC_SIZE), DTYPE), mine);
        if (i + uint(k) < length) sum = ep_add(sum, part);
      }
    }
  }
  const float greatest = meet_greatest(mine);
  if (KEPT != 0) {
    for (uint j = 0u; j < n; ++j) {
      const float x = ep_sub(kept[slot(j)], greatest);
      const float e = ep_exp(x);
      kept[slot(j)] = LOGARITHM != 0 ? x : e;
      sum = ep_add(sum, e);
    }
  } else {
    sum = ep_isinf(greatest) ? NAN : ep_mul(sum, part_of(mine, greatest));
  }
  const float total = meet_sum(sum);

  const float shift = LOGARITHM != 0 ? ep_log(total) : 0.0;
  n = 0u;
  for (uint i = begin; i < length; i += stride) {
    uvec4 block = uvec4(0u);
    if (KEPT == 0) block = load_block(shape, src, i, length);
    for (int k = 0; k < BLOCK; ++k) {
      float x;
      if (KEPT != 0) {
        x = kept[slot(n++)];  // beyond the end of the row this reads a value that is not used
      } else {
        x = ep_sub(decode(element_of(block, k, SRC_SIZE), DTYPE), greatest);
        if (LOGARITHM == 0) x = ep_exp(x);
      }
      put_element(block, k, SRC_SIZE, encode(LOGARITHM != 0 ? ep_sub(x, shift) : x / total, DTYPE));
    }
    store_block(shape, dst, i, length, block);
  }
}
