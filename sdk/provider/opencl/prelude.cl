// The OpenCL C dialect of the prelude of ep_api/scalar_ops.def, for one type. Before the include a program defines
//
//   EP_T      the type of x: float, double, int, uint, long or ulong
//   one of EP_FLOAT32, EP_FLOAT64, EP_SIGNED (with EP_U, the unsigned type of EP_T), EP_UNSIGNED
//   EP_WIDTH  for integers: the bits at which arithmetic wraps, such as 8 for i8 in an int, and 1 for bool in a uint
//
// f16, bf16 and the f8 types compute in float; elements.cl loads and stores them. Bounds are those of tier full of
// ep_api/accuracy.def:
// - functions of OpenCL's full profile if their bound is within ours, else our own functions (float: tan, atan, tanh,
//   atanh, erf);
// - float quotients and roots are exact if the program is built with -cl-fp32-correctly-rounded-divide-sqrt on a device
//   that takes it; on other devices define EP_ROUND_IN_FLOAT64, which needs cl_khr_fp64;
// - double tan, atan, tanh, atanh and erf are the device's functions, for which OpenCL requires only tier portable.
// Denormals are kept if the device keeps them (CL_FP_DENORM). Never build with -cl-fast-relaxed-math.
#pragma OPENCL FP_CONTRACT OFF
#if defined(EP_FLOAT64) || defined(EP_ROUND_IN_FLOAT64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define ep_lit(value) ((EP_T)(value))

static inline bool ep_land(bool x, bool y) { return x && y; }
static inline bool ep_lor(bool x, bool y) { return x || y; }
static inline bool ep_lxor(bool x, bool y) { return x != y; }
static inline bool ep_lnot(bool x) { return !x; }
static inline bool ep_truth(EP_T x) { return x != (EP_T)0; }
static inline EP_T ep_select(bool condition, EP_T x, EP_T y) { return condition ? x : y; }
static inline bool ep_eq(EP_T x, EP_T y) { return x == y; }
static inline bool ep_ne(EP_T x, EP_T y) { return x != y; }
static inline bool ep_lt(EP_T x, EP_T y) { return x < y; }
static inline bool ep_le(EP_T x, EP_T y) { return x <= y; }
static inline bool ep_gt(EP_T x, EP_T y) { return x > y; }
static inline bool ep_ge(EP_T x, EP_T y) { return x >= y; }

#if defined(EP_FLOAT32) || defined(EP_FLOAT64)
#include "sdk/provider/opencl/prelude_float.cl"
#define EP_FUNCTION static inline EP_T
#define EP_V EP_T
#include "sdk/provider/prelude_functions.def"
#else
#include "sdk/provider/opencl/prelude_integer.cl"
#endif
