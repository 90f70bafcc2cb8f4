#version 460
#extension GL_GOOGLE_include_directive : require
// Unary (ARITY 1), binary (2) and ternary (3) kinds. One module per arity and class. The scalar function, the dtypes
// and the layout are specialization constants.
#include "class.glsl"
#include "sdk/provider/glsl/prelude.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 2) const int OP = 0;
layout(constant_id = 3) const int SRC_DTYPE = 12;
layout(constant_id = 4) const int DST_DTYPE = 12;
layout(constant_id = 7) const int CHECKED = 0;  // 1: check divisors for faults

#include "shape.glsl"

#define ROW_FUNCTION row
#define ROW_OP OP
#if ARITY == 1
#include "unary_row.glsl"
#elif ARITY == 2
#include "binary_row.glsl"
#else
#include "ternary_row.glsl"
#endif

#define INPUTS ARITY
#define INPUT_SIZE(i) SRC_SIZE

T input_value(const int i, uvec2 bits) {
  return (SCALARS & (1 << i)) != 0 ? from_pair(push.scalars[i]) : decode(bits, SRC_DTYPE);
}

#if ARITY == 2 && defined(INTEGER)
void look_at_divisor(T y) {
  const uint code = divisor_fault(y);
  FaultSlot slot = FaultSlot(push.fault);
  if (code != 0u && atomicCompSwap(slot.taken, 0u, 1u) == 0u) {
    slot.code = code;
    slot.value = to_pair(y);
  }
}
#endif

uvec2 computed(uvec2 x, uvec2 y, uvec2 z) {
#if ARITY == 1
  const T value = row(input_value(0, x), from_pair(push.scalars[0]), from_pair(push.scalars[1]));
#elif ARITY == 2
#ifdef INTEGER
  if (CHECKED != 0) look_at_divisor(input_value(1, y));
#endif
  const T value = row(input_value(0, x), input_value(1, y));
#else
  const T value = row(input_value(0, x), input_value(1, y), input_value(2, z));
#endif
  return encode(value, DST_DTYPE);
}

#include "elements.glsl"
