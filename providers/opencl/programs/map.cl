// Unary, binary and ternary kinds in the type EP_T (prelude.cl) on elements of dtype SRC_DTYPE. The scalar function is
// the constant OP if the build sets it, else a launch value.
#include "sdk/provider/opencl/prelude.cl"
#include "sdk/provider/opencl/elements.cl"
#include "sdk/provider/opencl/rows.cl"
#include "providers/opencl/programs/shape.cl"
#include "providers/opencl/programs/fault.cl"

#ifndef OP
#define OP p.op
#endif

static inline EP_T scalar_value(ulong bits) {
#if defined(EP_FLOAT32)
  return as_float((uint)bits);
#elif defined(EP_FLOAT64)
  return as_double(bits);
#else
  return (EP_T)bits;
#endif
}
static inline EP_T input(global const uchar* src, const struct map_parameters* p, int i, ulong at) {
  if ((p->scalar_mask >> i & 1u) != 0) return scalar_value(p->scalars[i]);
  return ep_load(src, at, SRC_DTYPE);
}
static inline void result(global uchar* dst, const struct map_parameters* p, ulong at, EP_T value) {
  if (SRC_DTYPE != EP_DTYPE_bool && p->dst_dtype == EP_DTYPE_bool) {
    dst[at] = value != (EP_T)0;
  } else {
    ep_store(dst, at, SRC_DTYPE, value);
  }
}

#if defined(EP_SIGNED) || defined(EP_UNSIGNED)
#define LOOK_AT_DIVISOR(y)                                                  \
  if (faults != 0) {                                                        \
    const int code = ep_divisor_fault(y);                                   \
    if (code != 0) report_fault(faults, p.fault_slot, code, (long)(y));     \
  }
#else
#define LOOK_AT_DIVISOR(y)
#endif

#define MAP_KERNELS(layout)                                                                                          \
  kernel void map1_##layout(global uchar* dst, global const uchar* a, struct map_parameters p) {                     \
    const ulong index = get_global_id(0);                                                                            \
    if (index >= p.count) return;                                                                                    \
    const struct places at = layout##_places(&p, index, 2);                                                          \
    const EP_T x = ep_load(a, at.of[1], SRC_DTYPE);                                                                  \
    result(dst, &p, at.of[0], ep_unary_row(OP, x, scalar_value(p.scalars[0]), scalar_value(p.scalars[1])));          \
  }                                                                                                                  \
  kernel void map2_##layout(global uchar* dst, global const uchar* a, global const uchar* b,                         \
                            global struct ep_fault_slot* faults, struct map_parameters p) {                          \
    const ulong index = get_global_id(0);                                                                            \
    if (index >= p.count) return;                                                                                    \
    const struct places at = layout##_places(&p, index, 3);                                                          \
    const EP_T x = input(a, &p, 0, at.of[1]);                                                                        \
    const EP_T y = input(b, &p, 1, at.of[2]);                                                                        \
    LOOK_AT_DIVISOR(y)                                                                                               \
    result(dst, &p, at.of[0], ep_binary_row(OP, x, y));                                                              \
  }                                                                                                                  \
  kernel void map3_##layout(global uchar* dst, global const uchar* a, global const uchar* b, global const uchar* c,  \
                            struct map_parameters p) {                                                               \
    const ulong index = get_global_id(0);                                                                            \
    if (index >= p.count) return;                                                                                    \
    const struct places at = layout##_places(&p, index, 4);                                                          \
    const EP_T x = input(a, &p, 0, at.of[1]);                                                                        \
    const EP_T y = input(b, &p, 1, at.of[2]);                                                                        \
    const EP_T z = input(c, &p, 2, at.of[3]);                                                                        \
    result(dst, &p, at.of[0], ep_ternary_row(OP, x, y, z));                                                          \
  }

#if defined(STRIDED)
MAP_KERNELS(strided)
#else
MAP_KERNELS(flat)
#endif
