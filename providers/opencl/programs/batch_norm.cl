// batch_norm for inference: one work-item per element.
#include "sdk/provider/opencl/prelude.cl"
#include "sdk/provider/opencl/elements.cl"

enum { DST, SRC, SCALE, SHIFT, MEAN, VARIANCE, OPERANDS };

// Mirrors BatchNormParameters of kernels/normalization.cpp.
struct batch_norm_parameters {
  ulong count;
  ulong eps;  // bits of EP_T
  ulong dims[8];
  ulong offsets[OPERANDS];
  ulong strides[OPERANDS][8];
  int dtypes[OPERANDS];  // 0: the operand is absent
  int rank;
  int unused;
};

kernel void batch_norm(global uchar* dst, global const uchar* src, global const uchar* scale,
                       global const uchar* shift, global const uchar* mean, global const uchar* variance,
                       struct batch_norm_parameters p) {
  ulong rest = get_global_id(0);
  if (rest >= p.count) return;
  ulong at[OPERANDS];
  for (int i = 0; i < OPERANDS; ++i) at[i] = p.offsets[i];
  for (int axis = p.rank - 1; axis >= 0; --axis) {
    const ulong quotient = rest <= 0xffffffffu ? (uint)rest / (uint)p.dims[axis] : rest / p.dims[axis];
    const ulong position = rest - quotient * p.dims[axis];
    rest = quotient;
    for (int i = 0; i < OPERANDS; ++i) at[i] += position * p.strides[i][axis];
  }
#ifdef EP_FLOAT64
  const EP_T eps = as_double(p.eps);
#else
  const EP_T eps = as_float((uint)p.eps);
#endif
  EP_T x = ep_load(src, at[SRC], SRC_DTYPE) - ep_load(mean, at[MEAN], p.dtypes[MEAN]);
  x = ep_div(x, ep_sqrt(ep_load(variance, at[VARIANCE], p.dtypes[VARIANCE]) + eps));
  if (p.dtypes[SCALE] != 0) x *= ep_load(scale, at[SCALE], p.dtypes[SCALE]);
  if (p.dtypes[SHIFT] != 0) x += ep_load(shift, at[SHIFT], p.dtypes[SHIFT]);
  ep_store(dst, at[DST], SRC_DTYPE, x);
}
