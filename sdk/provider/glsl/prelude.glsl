// The GLSL dialect of the prelude of ep_api/scalar_ops.def, for one type. Before the include a shader defines
//
//   T                  the type of x: float, int, uint, int64_t or uint64_t
//   one of CLASS_f32, CLASS_i32, CLASS_u32, CLASS_i64, CLASS_u64, to match
//   WIDTH              for int and uint: the bits at which arithmetic wraps, such as 8 for i8, and 1 for bool in a uint
//
// It needs GL_GOOGLE_include_directive; 64-bit types need GL_EXT_shader_explicit_arithmetic_types_int64. Error bounds
// are those of ep_api/accuracy.def on every device that rounds sums and products to nearest. There is no double: GLSL
// has no functions for it.

// An integer result, wrapped at WIDTH bits.
T wrap(T x) {
#if defined(CLASS_i32) || defined(CLASS_u32)
  return WIDTH == 32 ? x : bitfieldExtract(x, 0, WIDTH);
#else
  return x;
#endif
}

#define ep_lit(value) T(value)
#if defined(CLASS_f32)
#include "sdk/provider/glsl/prelude_float.glsl"
#else
#include "sdk/provider/glsl/prelude_integer.glsl"
#endif

bool ep_land(bool x, bool y) { return x && y; }
bool ep_lor(bool x, bool y) { return x || y; }
bool ep_lxor(bool x, bool y) { return x != y; }
bool ep_lnot(bool x) { return !x; }
bool ep_truth(T x) { return x != T(0); }
T ep_select(bool condition, T x, T y) { return condition ? x : y; }
bool ep_eq(T x, T y) { return x == y; }
bool ep_ne(T x, T y) { return !(x == y); }
bool ep_lt(T x, T y) { return x < y; }
bool ep_le(T x, T y) { return x <= y; }
bool ep_gt(T x, T y) { return x > y; }
bool ep_ge(T x, T y) { return x >= y; }

#if defined(CLASS_f32)
#define EP_FUNCTION float
#define EP_V float
#include "sdk/provider/prelude_functions.def"
#endif
