// The GLSL dialect of the prelude of ep_api/scalar_ops.def, in the type T of the module.
#if defined(CLASS_f32)
#include "prelude_float.glsl"
#else
#include "prelude_integer.glsl"
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
#define ep_lit(value) T(value)
