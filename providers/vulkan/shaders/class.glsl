// The class of a module: the type T in which it computes. The classes are f32 (all floats up to 32 bits), i32 and u32
// (integers up to 32 bits; bool is an unsigned integer of one bit), i64 and u64. A load converts an element to T, a
// store converts it back.
#if defined(CLASS_i64) || defined(CLASS_u64)
#define WIDE
#endif
#if !defined(CLASS_f32)
#define INTEGER
#endif
#include "memory.glsl"

#if defined(CLASS_f32)
#define T float
#include "narrow_floats.glsl"
#elif defined(CLASS_i32)
#define T int
#elif defined(CLASS_u32)
#define T uint
#elif defined(CLASS_i64)
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define T int64_t
#elif defined(CLASS_u64)
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define T uint64_t
#endif

// The bits of an integer result. Arithmetic wraps around at this width.
layout(constant_id = 1) const int WIDTH = 32;

T as_T(T x) { return x; }
T as_T(bool x) { return x ? T(1) : T(0); }

T from_pair(uvec2 pair) {
#if defined(CLASS_f32)
  return uintBitsToFloat(pair.x);
#elif defined(CLASS_i64)
  return int64_t(packUint2x32(pair));
#elif defined(CLASS_u64)
  return packUint2x32(pair);
#else
  return T(pair.x);
#endif
}
uvec2 to_pair(T x) {
#if defined(CLASS_f32)
  return uvec2(floatBitsToUint(x), 0u);
#elif defined(WIDE)
  return unpackUint2x32(uint64_t(x));
#elif defined(CLASS_i32)
  return uvec2(uint(x), x < 0 ? 0xffffffffu : 0u);
#else
  return uvec2(x, 0u);
#endif
}

// decode gives the value of an element; encode gives its bits.
T decode(uvec2 bits, const int dtype) {
#if defined(WIDE)
  return from_pair(bits);
#elif defined(CLASS_f32)
  if (dtype != DTYPE_f32) return narrow_to_f32(bits.x, dtype);
  return uintBitsToFloat(bits.x);
#else
  const int size = size_of(dtype);
  return size == 4 ? T(bits.x) : bitfieldExtract(T(bits.x), 0, size * 8);
#endif
}
uvec2 encode(T value, const int dtype) {
#if defined(CLASS_f32)
  if (dtype == DTYPE_bool) return uvec2(value != 0.0 ? 1u : 0u, 0u);
  return uvec2(dtype == DTYPE_f32 ? floatBitsToUint(value) : narrow_from_f32(value, dtype), 0u);
#elif defined(WIDE)
  return to_pair(value);
#else
  return uvec2(uint(value), 0u);
#endif
}

T load(uvec2 base, uint index, const int dtype) { return decode(load_element(base, index, size_of(dtype)), dtype); }
void store(uvec2 base, uint index, const int dtype, T value) {
  store_element(base, index, size_of(dtype), encode(value, dtype));
}
