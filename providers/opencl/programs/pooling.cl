// pooling: one work-item per result. Axes are image, channel and three spatial ones; missing ones have length 1.
#include "sdk/provider/opencl/prelude.cl"
#include "sdk/provider/opencl/elements.cl"

enum { POOLING_MAX = 1, POOLING_AVERAGE = 2, POOLING_AVERAGE_INCLUDE_PAD = 3 };

// Mirrors PoolingParameters of kernels/pooling.cpp.
struct pooling_parameters {
  ulong count;
  ulong channels;
  ulong src[3];
  ulong dst[3];
  long kernel_dims[3];
  long stride[3];
  long dilation[3];
  long pad_low[3];
  long pad_high[3];
  ulong offsets[3];  // offsets of DST, SRC and DST_INDICES
  ulong strides[3][5];
  int op;
  int has_indices;
};

// The number of taps of a window that are inside the source or its padding.
static inline long padded_taps(const struct pooling_parameters* p, int axis, ulong position) {
  const long length = (long)p->src[axis] + p->pad_low[axis] + p->pad_high[axis];
  const long left = length - (long)position * p->stride[axis];
  return min(p->kernel_dims[axis], (left + p->dilation[axis] - 1) / p->dilation[axis]);
}

kernel void pooling(global uchar* dst, global const uchar* src, global long* indices, struct pooling_parameters p) {
  const ulong number = get_global_id(0);
  if (number >= p.count) return;
  ulong rest = number / p.dst[2];
  const ulong x = number - rest * p.dst[2];
  const ulong y = rest % p.dst[1];
  rest /= p.dst[1];
  const ulong z = rest % p.dst[0];
  rest /= p.dst[0];
  const ulong channel = rest % p.channels;
  const ulong image = rest / p.channels;
  const ulong plane = p.offsets[1] + image * p.strides[1][0] + channel * p.strides[1][1];
  EP_T value = p.op == POOLING_MAX ? ep_lowest() : (EP_T)0;
  long where = -1;
  long inside = 0;
  for (long kz = 0; kz < p.kernel_dims[0]; ++kz) {
    const long sz = (long)z * p.stride[0] - p.pad_low[0] + kz * p.dilation[0];
    if (sz < 0 || sz >= (long)p.src[0]) continue;
    for (long ky = 0; ky < p.kernel_dims[1]; ++ky) {
      const long sy = (long)y * p.stride[1] - p.pad_low[1] + ky * p.dilation[1];
      if (sy < 0 || sy >= (long)p.src[1]) continue;
      for (long kx = 0; kx < p.kernel_dims[2]; ++kx) {
        const long sx = (long)x * p.stride[2] - p.pad_low[2] + kx * p.dilation[2];
        if (sx < 0 || sx >= (long)p.src[2]) continue;
        const EP_T s =
            ep_load(src, plane + sz * p.strides[1][2] + sy * p.strides[1][3] + sx * p.strides[1][4], SRC_DTYPE);
        ++inside;
        if (p.op != POOLING_MAX) {
          value = ep_add(value, s);
        } else if (where < 0 || (!ep_isnan(value) && (s > value || ep_isnan(s)))) {
          value = s;
          where = (sz * (long)p.src[1] + sy) * (long)p.src[2] + sx;
        }
      }
    }
  }
  if (p.op == POOLING_AVERAGE_INCLUDE_PAD) inside = padded_taps(&p, 0, z) * padded_taps(&p, 1, y) * padded_taps(&p, 2, x);
  if (p.op != POOLING_MAX) value = ep_div(value, (EP_T)max(inside, 1l));
#define PLACE(slot)                                                                                            \
  (p.offsets[slot] + image * p.strides[slot][0] + channel * p.strides[slot][1] + z * p.strides[slot][2] +      \
   y * p.strides[slot][3] + x * p.strides[slot][4])
  ep_store(dst, PLACE(0), SRC_DTYPE, value);
  if (p.has_indices != 0) indices[PLACE(2)] = where;
}
