#version 460
#extension GL_GOOGLE_include_directive : require
// Element-wise kinds: unary (ARITY 1), binary (2), ternary (3). One module per arity and class; the row, the dtypes and the
// layout are specialization constants.
#include "class.glsl"
#include "prelude.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 2) const int OP = 0;
layout(constant_id = 3) const int SRC_DTYPE = 12;
layout(constant_id = 4) const int DST_DTYPE = 12;
layout(constant_id = 5) const int SCALARS = 0;   // bit i: input i is launch scalar i
layout(constant_id = 6) const int STRIDED = 0;   // 0: every operand lies one element after the other
layout(constant_id = 7) const int CHECKED = 0;   // divisors are looked at
layout(constant_id = 8) const int PER_THREAD = 4;

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

T input_at(const int i, uint index) {
  if ((SCALARS & (1 << i)) != 0) return from_pair(push.scalars[i]);
  return load(push.src[i], index, SRC_DTYPE);
}

void run(uint index) {
  const Places at = places_of(index, ARITY);
  const T x = input_at(0, at.of[1]);
#if ARITY == 1
  store(push.dst, at.of[0], DST_DTYPE, row(x, from_pair(push.scalars[0]), from_pair(push.scalars[1])));
#elif ARITY == 2
  const T y = input_at(1, at.of[2]);
#ifdef INTEGER
  if (CHECKED != 0) {
    const uint code = divisor_fault(x, y);
    FaultSlot slot = FaultSlot(push.fault);
    if (code != 0u && atomicCompSwap(slot.taken, 0u, 1u) == 0u) {
      slot.code = code;
      slot.value = to_pair(y);
    }
  }
#endif
  store(push.dst, at.of[0], DST_DTYPE, row(x, y));
#else
  const T y = input_at(1, at.of[2]);
  const T z = input_at(2, at.of[3]);
  store(push.dst, at.of[0], DST_DTYPE, row(x, y, z));
#endif
}

#include "elements.glsl"
