#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// softmax and log-softmax of rows that fit in registers: 2^LANE_BITS invocations share a row, and each holds HELD
// blocks of it. A row is read once. The loops are unrolled, so that every element has its own register.
//
// The maximum may ignore NaN: a NaN in the row makes the sum NaN, and so every result.
#include "class.glsl"
#include "sdk/provider/glsl/prelude.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 0) const int THREADS = 256;
layout(constant_id = 2) const int LOGARITHM = 0;
layout(constant_id = 3) const int DTYPE = 12;
layout(constant_id = 6) const int HELD = 1;
layout(constant_id = 7) const int LANE_BITS = 5;

#include "rows.glsl"

const int ELEMENTS = HELD * BLOCK;
const int LANES = 1 << LANE_BITS;
shared float maxima[THREADS];
shared float sums[THREADS];
shared float partial[THREADS];

// meet_greatest and meet_sum combine the values of a row's invocations: up to 32 values in one step, more values in two
// steps, in which each invocation first combines a column of them. A barrier separates two writes to an array, so that
// all reads of the first value are done.
const int PARTIALS = LANE_BITS <= 5 ? LANES : 1 << (LANE_BITS / 2);

float meet_greatest(float x) {
  if (LANE_BITS == 0) return x;
  const uint me = gl_LocalInvocationID.x;
  const uint begin = me - my_lane();
  maxima[me] = x;
  barrier();
  const uint column = begin + (my_lane() & uint(PARTIALS - 1));
  if (LANE_BITS > 5) {
    [[unroll]] for (int i = 0; i < LANES / PARTIALS; ++i) x = max(x, maxima[column + uint(i * PARTIALS)]);
    partial[me] = x;
    barrier();
    [[unroll]] for (int i = 0; i < PARTIALS; ++i) x = max(x, partial[begin + uint(i)]);
  } else {
    [[unroll]] for (int i = 0; i < PARTIALS; ++i) x = max(x, maxima[begin + uint(i)]);
  }
  return x;
}
float meet_sum(float x) {
  if (LANE_BITS == 0) return x;
  const uint me = gl_LocalInvocationID.x;
  const uint begin = me - my_lane();
  sums[me] = x;
  barrier();
  float sum = 0.0;
  if (LANE_BITS > 5) {
    const uint column = begin + (my_lane() & uint(PARTIALS - 1));
    [[unroll]] for (int i = 0; i < LANES / PARTIALS; ++i) sum = ep_add(sum, sums[column + uint(i * PARTIALS)]);
    partial[me] = sum;
    barrier();
    sum = 0.0;
    [[unroll]] for (int i = 0; i < PARTIALS; ++i) sum = ep_add(sum, partial[begin + uint(i)]);
  } else {
    [[unroll]] for (int i = 0; i < PARTIALS; ++i) sum = ep_add(sum, sums[begin + uint(i)]);
  }
  return sum;
}

// exp(x) for x <= 0 and for NaN, with the polynomial of ep_exp. Adding 1.5 * 2^23 rounds to an integer and leaves it in
// the low bits.
float power(float x) {
  const float bounded = x < -104.0 ? -104.0 : x;
  precise float shifted = fma(bounded, 1.44269504088896341, 12582912.0);
  precise float whole = shifted - 12582912.0;
  precise float r = fma(whole, 2.12194440e-4, fma(whole, -0.693359375, bounded));
  precise float p = fma(1.9875691500e-4, r, 1.3981999507e-3);
  p = fma(p, r, 8.3334519073e-3);
  p = fma(p, r, 4.1665795894e-2);
  p = fma(p, r, 1.6666665459e-1);
  p = fma(p, r, 5.0000001201e-1);
  precise float y = fma(p, r * r, r) + 1.0;
  return scale(y, floatBitsToInt(shifted) - 0x4b400000);
}

// x / total. `inverse` is 1 / total; the remainder corrects the product x * inverse.
float share(float x, float total, float inverse) {
  precise float near = x * inverse;
  return fma(fma(-near, total, x), inverse, near);
}

// The row's first element in block `b` of this invocation.
uint first_of(int b) { return (uint(b << LANE_BITS) + my_lane()) * uint(BLOCK); }

// Longer than other functions: registers hold the local arrays of one function.
void main() {
  const uint number = my_row();
  const bool inside = number < push.values;
  Rows shape = Rows(push.shape);
  uint dst = 0u;
  uint src = 0u;
  if (inside) place_row(shape, number, dst, src);
  const uint length = inside ? push.row_length : 0u;
  const bool packed = BLOCK > 1 && push.aligned != 0u;
  // The end of the row may cut one block; it is block `cut` of its invocation.
  const uint last = length / uint(BLOCK);
  const bool has_cut = packed && last * uint(BLOCK) < length && (last & uint(LANES - 1)) == my_lane();
  const int cut = has_cut ? int(last >> LANE_BITS) : HELD;

  uvec4 raw[HELD];
  if (packed) {
    [[unroll]] for (int b = 0; b < HELD; ++b) {
      raw[b] = uvec4(0u);
      if (first_of(b) + uint(BLOCK) <= length) {
        raw[b] = load_pack(push.src, (src + first_of(b)) / uint(BLOCK), BLOCK * SRC_SIZE);
      }
    }
    if (has_cut) {
      const uvec4 block = load_block(shape, src, first_of(cut), length);
      [[unroll]] for (int b = 0; b < HELD; ++b) raw[b] = b == cut ? block : raw[b];
    }
  } else {
    [[unroll]] for (int b = 0; b < HELD; ++b) {
      raw[b] = uvec4(0u);
      if (first_of(b) < length) raw[b] = load_block(shape, src, first_of(b), length);
    }
  }

  float held[ELEMENTS];
  float greatest = -INFINITY;
  [[unroll]] for (int b = 0; b < HELD; ++b) {
    [[unroll]] for (int k = 0; k < BLOCK; ++k) {
      const float x = decode(element_of(raw[b], k, SRC_SIZE), DTYPE);
      held[b * BLOCK + k] = first_of(b) + uint(k) < length ? x : -INFINITY;  // adds nothing to the sum
      greatest = max(greatest, held[b * BLOCK + k]);
    }
  }
  greatest = meet_greatest(greatest);
  float total = 0.0;
  [[unroll]] for (int i = 0; i < ELEMENTS; ++i) {
    const float x = ep_sub(held[i], greatest);
    const float e = power(x);
    held[i] = LOGARITHM != 0 ? x : e;
    total = ep_add(total, e);
  }
  total = meet_sum(total);

  const float shift = LOGARITHM != 0 ? ep_log(total) : 0.0;
  const float inverse = 1.0 / total;
  [[unroll]] for (int b = 0; b < HELD; ++b) {
    raw[b] = uvec4(0u);
    [[unroll]] for (int k = 0; k < BLOCK; ++k) {
      const float x = held[b * BLOCK + k];
      put_element(raw[b], k, SRC_SIZE, encode(LOGARITHM != 0 ? ep_sub(x, shift) : share(x, total, inverse), DTYPE));
    }
  }
  if (packed) {
    [[unroll]] for (int b = 0; b < HELD; ++b) {
      if (first_of(b) + uint(BLOCK) <= length) {
        store_pack(push.dst, (dst + first_of(b)) / uint(BLOCK), BLOCK * SRC_SIZE, raw[b]);
      }
    }
    if (has_cut) {
      uvec4 block = uvec4(0u);
      [[unroll]] for (int b = 0; b < HELD; ++b) block = b == cut ? raw[b] : block;
      store_block(shape, dst, first_of(cut), length, block);
    }
  } else {
    [[unroll]] for (int b = 0; b < HELD; ++b) {
      if (first_of(b) < length) store_block(shape, dst, first_of(b), length, raw[b]);
    }
  }
}
