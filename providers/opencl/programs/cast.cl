// copy with a cast, from any type to any: one program; the types are launch values. A conversion to a narrow float
// passes through f32 and must not round twice: the step to f32 then rounds toward zero and sets the last bit if it was
// inexact.
#define EP_T float
#define EP_FLOAT32
#ifdef EP_HAS_FLOAT64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#include "sdk/provider/opencl/elements.cl"
#include "providers/opencl/programs/shape.cl"

static inline bool is_float32(int dtype) {
  return dtype == EP_DTYPE_f32 || dtype == EP_DTYPE_f16 || dtype == EP_DTYPE_bf16 || dtype == EP_DTYPE_f8e4m3fn ||
         dtype == EP_DTYPE_f8e5m2;
}
static inline bool is_signed(int dtype) {
  return dtype == EP_DTYPE_i8 || dtype == EP_DTYPE_i16 || dtype == EP_DTYPE_i32 || dtype == EP_DTYPE_i64;
}
static inline float made_odd(float toward_zero, bool exact) {
  return exact ? toward_zero : as_float(as_uint(toward_zero) | 1u);
}

static inline float float_of_signed(long x, int dst_dtype) {
  if (dst_dtype == EP_DTYPE_f32) return convert_float_rte(x);
  const float toward_zero = convert_float_rtz(x);
  return made_odd(toward_zero, convert_long_sat(toward_zero) == x);
}
static inline float float_of_unsigned(ulong x, int dst_dtype) {
  if (dst_dtype == EP_DTYPE_f32) return convert_float_rte(x);
  const float toward_zero = convert_float_rtz(x);
  return made_odd(toward_zero, convert_ulong_sat(toward_zero) == x);
}

// Truncates toward zero and saturates; NaN becomes 0. `T` is float or double.
#define STORE_INTEGER_OF(T)                                                                                          \
  static inline void store_integer_of_##T(global uchar* dst, ulong at, int dtype, T x) {                             \
    const T value = isnan(x) ? (T)0 : x;                                                                             \
    switch (dtype) {                                                                                                 \
      case EP_DTYPE_i8: ((global char*)dst)[at] = convert_char_sat_rtz(value); break;                                \
      case EP_DTYPE_i16: ((global short*)dst)[at] = convert_short_sat_rtz(value); break;                             \
      case EP_DTYPE_i32: ((global int*)dst)[at] = convert_int_sat_rtz(value); break;                                 \
      case EP_DTYPE_i64: ((global long*)dst)[at] = convert_long_sat_rtz(value); break;                               \
      case EP_DTYPE_u8: dst[at] = convert_uchar_sat_rtz(value); break;                                               \
      case EP_DTYPE_u16: ((global ushort*)dst)[at] = convert_ushort_sat_rtz(value); break;                           \
      case EP_DTYPE_u32: ((global uint*)dst)[at] = convert_uint_sat_rtz(value); break;                               \
      case EP_DTYPE_u64: ((global ulong*)dst)[at] = convert_ulong_sat_rtz(value); break;                             \
      default: dst[at] = x != (T)0; break;                                                                           \
    }                                                                                                                \
  }
STORE_INTEGER_OF(float)
#ifdef EP_HAS_FLOAT64
STORE_INTEGER_OF(double)
static inline float float_of_double(double x, int dst_dtype) {
  if (dst_dtype == EP_DTYPE_f32 || isnan(x) || isinf(x)) return convert_float_rte(x);
  const float toward_zero = convert_float_rtz(x);
  return made_odd(toward_zero, (double)toward_zero == x);
}
#endif

static inline void cast_one(global uchar* dst, ulong to, int dst_dtype, global const uchar* src, ulong from,
                            int src_dtype) {
#ifdef EP_HAS_FLOAT64
  if (src_dtype == EP_DTYPE_f64) {
    const double x = ((global const double*)src)[from];
    if (is_float32(dst_dtype)) {
      ep_store_float(dst, to, dst_dtype, float_of_double(x, dst_dtype));
    } else {
      store_integer_of_double(dst, to, dst_dtype, x);
    }
    return;
  }
#endif
  if (is_float32(src_dtype)) {
    const float x = ep_load_float(src, from, src_dtype);
#ifdef EP_HAS_FLOAT64
    if (dst_dtype == EP_DTYPE_f64) {
      ((global double*)dst)[to] = x;
      return;
    }
#endif
    if (is_float32(dst_dtype)) {
      ep_store_float(dst, to, dst_dtype, x);
    } else {
      store_integer_of_float(dst, to, dst_dtype, x);
    }
    return;
  }
  const bool negative_too = is_signed(src_dtype);
  const ulong bits = negative_too ? (ulong)ep_load_signed(src, from, src_dtype) : ep_load_unsigned(src, from, src_dtype);
#ifdef EP_HAS_FLOAT64
  if (dst_dtype == EP_DTYPE_f64) {
    ((global double*)dst)[to] = negative_too ? convert_double_rte((long)bits) : convert_double_rte(bits);
    return;
  }
#endif
  if (is_float32(dst_dtype)) {
    ep_store_float(dst, to, dst_dtype,
                   negative_too ? float_of_signed((long)bits, dst_dtype) : float_of_unsigned(bits, dst_dtype));
  } else {
    ep_store_integer(dst, to, dst_dtype, dst_dtype == EP_DTYPE_bool ? (ulong)(bits != 0) : bits);
  }
}

#define CAST_KERNEL(layout)                                                                              \
  kernel void cast_##layout(global uchar* dst, global const uchar* src, struct map_parameters p) {       \
    const ulong index = get_global_id(0);                                                                \
    if (index >= p.count) return;                                                                        \
    const struct places at = layout##_places(&p, index, 2);                                              \
    cast_one(dst, at.of[0], p.dst_dtype, src, at.of[1], p.src_dtype);                                    \
  }

CAST_KERNEL(flat)
CAST_KERNEL(strided)
