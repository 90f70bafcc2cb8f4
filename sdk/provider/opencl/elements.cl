// Loads and stores elements as EP_T (prelude.cl). f16, bf16 and the f8 types are converted as bits: vstore_half needs
// no extension either, but devices may flush its denormals. The dtype is EP_DTYPE_f16 and so on, from dtypes.def; if it
// is a constant, the compiler keeps only one conversion. Conversions from float round once, to nearest even.

enum {
#define EP_DTYPE(name, id, bits, type_class) EP_DTYPE_##name = id,
#include "ep_api/dtypes.def"
#undef EP_DTYPE
};

static inline float ep_f16_to_f32(uint bits) {
  const uint shifted = (bits & 0x7fffu) << 13;  // exponent and digits at their positions in f32
  const float denormal = as_float(shifted + 0x38800000u) - 6.103515625e-5f;
  uint magnitude = shifted < 0x800000u ? as_uint(denormal) : shifted + 0x38000000u;
  if (shifted >= 0x0f800000u) magnitude = shifted == 0x0f800000u ? 0x7f800000u : 0x7fc00000u;
  return as_float(((bits & 0x8000u) << 16) | magnitude);
}
static inline uint ep_f16_from_f32(float value) {
  const uint bits = as_uint(value);
  const uint magnitude = bits & 0x7fffffffu;
  const float denormal = as_float(magnitude) + 0.5f;  // the sum rounds at the last bit of a denormal
  uint result = magnitude < 0x38800000u ? as_uint(denormal) - 0x3f000000u
                                        : (magnitude - 0x37fff001u + ((magnitude >> 13) & 1u)) >> 13;
  if (magnitude >= 0x477ff000u) result = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return ((bits >> 16) & 0x8000u) | result;
}
static inline uint ep_bf16_from_f32(float value) {
  const uint bits = as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40u;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

// The f8 formats: f8e5m2 is like IEEE; f8e4m3fn has no infinities, and its greatest magnitude is NaN.
static inline float ep_f8_to_f32(uint bits, int digits, bool has_infinity) {
  const uint sign = (bits & 0x80u) << 24;
  const uint magnitude = bits & 0x7fu;
  const uint all = has_infinity ? 0x7cu : 0x80u;
  const int bias = has_infinity ? 15 : 7;
  if (has_infinity && magnitude == all) return as_float(sign | 0x7f800000u);
  if (has_infinity ? magnitude > all : magnitude == 0x7fu) return as_float(sign | 0x7fc00000u);
  if (magnitude >= (1u << digits)) {
    return as_float(sign | ((magnitude << (23 - digits)) + ((uint)(127 - bias) << 23)));
  }
  if (magnitude == 0u) return as_float(sign);
  const int top = 31 - (int)clz(magnitude);  // a narrow denormal is normal in f32
  return as_float(sign | ((uint)(128 - bias - digits + top) << 23) | ((magnitude << (23 - top)) & 0x7fffffu));
}
static inline uint ep_f8_from_f32(float value, int digits, bool has_infinity) {
  const uint bits = as_uint(value);
  const uint magnitude = bits & 0x7fffffffu;
  const uint sign = (bits >> 31) << 7;
  const int bias = has_infinity ? 15 : 7;
  const uint nan = has_infinity ? 0x7eu : 0x7fu;
  const uint overflow = has_infinity ? 0x7cu : 0x7fu;
  const uint greatest = has_infinity ? 0x7bu : 0x7eu;
  if (magnitude > 0x7f800000u) return sign | nan;
  if (magnitude == 0x7f800000u) return sign | overflow;
  const int exponent = (int)(magnitude >> 23) - 127;
  int drop = 23 - digits;
  if (exponent < 1 - bias) drop += 1 - bias - exponent;
  if (drop > 25) return sign;
  const uint significand = (magnitude & 0x7fffffu) | (magnitude >= 0x800000u ? 0x800000u : 0u);
  uint kept = significand >> drop;
  const uint rest = significand & ((1u << drop) - 1u);
  const uint half_way = 1u << (drop - 1);
  if (rest > half_way || (rest == half_way && (kept & 1u) != 0u)) ++kept;
  const uint result = exponent < 1 - bias ? kept : kept + ((uint)(exponent + bias - 1) << digits);
  return sign | (result > greatest ? overflow : result);
}

static inline float ep_load_float(global const uchar* base, ulong index, int dtype) {
  switch (dtype) {
    case EP_DTYPE_f16: return ep_f16_to_f32(((global const ushort*)base)[index]);
    case EP_DTYPE_bf16: return as_float((uint)((global const ushort*)base)[index] << 16);
    case EP_DTYPE_f8e4m3fn: return ep_f8_to_f32(base[index], 3, false);
    case EP_DTYPE_f8e5m2: return ep_f8_to_f32(base[index], 2, true);
    default: return ((global const float*)base)[index];
  }
}
static inline void ep_store_float(global uchar* base, ulong index, int dtype, float value) {
  switch (dtype) {
    case EP_DTYPE_f16: ((global ushort*)base)[index] = (ushort)ep_f16_from_f32(value); break;
    case EP_DTYPE_bf16: ((global ushort*)base)[index] = (ushort)ep_bf16_from_f32(value); break;
    case EP_DTYPE_f8e4m3fn: base[index] = (uchar)ep_f8_from_f32(value, 3, false); break;
    case EP_DTYPE_f8e5m2: base[index] = (uchar)ep_f8_from_f32(value, 2, true); break;
    default: ((global float*)base)[index] = value;
  }
}
static inline long ep_load_signed(global const uchar* base, ulong index, int dtype) {
  switch (dtype) {
    case EP_DTYPE_i8: return ((global const char*)base)[index];
    case EP_DTYPE_i16: return ((global const short*)base)[index];
    case EP_DTYPE_i32: return ((global const int*)base)[index];
    default: return ((global const long*)base)[index];
  }
}
static inline ulong ep_load_unsigned(global const uchar* base, ulong index, int dtype) {
  switch (dtype) {
    case EP_DTYPE_u16: return ((global const ushort*)base)[index];
    case EP_DTYPE_u32: return ((global const uint*)base)[index];
    case EP_DTYPE_u64: return ((global const ulong*)base)[index];
    default: return base[index];
  }
}
// Stores the low bits; integers wrap.
static inline void ep_store_integer(global uchar* base, ulong index, int dtype, ulong value) {
  switch (dtype) {
    case EP_DTYPE_i16:
    case EP_DTYPE_u16: ((global ushort*)base)[index] = (ushort)value; break;
    case EP_DTYPE_i32:
    case EP_DTYPE_u32: ((global uint*)base)[index] = (uint)value; break;
    case EP_DTYPE_i64:
    case EP_DTYPE_u64: ((global ulong*)base)[index] = value; break;
    default: base[index] = (uchar)value;
  }
}

#if defined(EP_FLOAT32)
#define ep_load(base, index, dtype) ep_load_float(base, index, dtype)
#define ep_store(base, index, dtype, value) ep_store_float(base, index, dtype, value)
#elif defined(EP_FLOAT64)
#define ep_load(base, index, dtype) (((global const double*)(base))[index])
#define ep_store(base, index, dtype, value) (((global double*)(base))[index] = (value))
#elif defined(EP_SIGNED)
#define ep_load(base, index, dtype) ((EP_T)ep_load_signed(base, index, dtype))
#define ep_store(base, index, dtype, value) ep_store_integer(base, index, dtype, (ulong)(value))
#elif defined(EP_UNSIGNED)
#define ep_load(base, index, dtype) ((EP_T)ep_load_unsigned(base, index, dtype))
#define ep_store(base, index, dtype, value) ep_store_integer(base, index, dtype, (ulong)(value))
#endif
