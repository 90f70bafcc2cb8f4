// layer_norm: mean, variance and results of a row. One group computes a row.
#include "sdk/provider/opencl/prelude.cl"
#include "sdk/provider/opencl/elements.cl"
#include "providers/opencl/programs/axes.cl"

// Mirrors LayerNormParameters of kernels/normalization.cpp.
struct layer_norm_parameters {
  struct row_parameters rows;
  ulong eps;  // bits of EP_T
  ulong scale;
  ulong shift;
  ulong mean;
  ulong inv_std;
  ulong scale_strides[8];  // strides along the walked axes
  ulong shift_strides[8];
  ulong mean_strides[8];  // strides along the kept axes
  ulong inv_std_strides[8];
  int scale_dtype;  // 0: the operand is absent
  int shift_dtype;
  int has_mean;
  int has_inv_std;
};

// The sum over the lanes of a group, returned to every lane.
static inline EP_T sum_of_lanes(local EP_T* meeting, EP_T value) {
  const uint lane = (uint)get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  meeting[lane] = value;
  for (uint step = LANES / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < step) meeting[lane] += meeting[lane + step];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return meeting[0];
}

kernel void layer_norm(global uchar* dst, global const uchar* src, global const uchar* scale,
                       global const uchar* shift, global float* out_mean, global float* out_inv_std,
                       struct layer_norm_parameters p) {
  local EP_T meeting[LANES];
  const uint lane = (uint)get_local_id(0);
  const ulong row = get_group_id(0);
  const EP_T n = (EP_T)p.rows.length;
#ifdef EP_FLOAT64
  const EP_T eps = as_double(p.eps);
#else
  const EP_T eps = as_float((uint)p.eps);
#endif
  ulong to, from;
  place_row(&p.rows, row, &to, &from);
  EP_T sum = 0;
  for (ulong i = lane; i < p.rows.length; i += LANES) sum += ep_load(src, from + src_in_row(&p.rows, i), SRC_DTYPE);
  const EP_T mean = ep_div(sum_of_lanes(meeting, sum), n);
  EP_T squares = 0;
  for (ulong i = lane; i < p.rows.length; i += LANES) {
    const EP_T x = ep_load(src, from + src_in_row(&p.rows, i), SRC_DTYPE) - mean;
    squares += x * x;
  }
  const EP_T inv_std = ep_div((EP_T)1, ep_sqrt(ep_div(sum_of_lanes(meeting, squares), n) + eps));
  for (ulong i = lane; i < p.rows.length; i += LANES) {
    EP_T x = (ep_load(src, from + src_in_row(&p.rows, i), SRC_DTYPE) - mean) * inv_std;
    ulong scale_at = p.scale;
    ulong shift_at = p.shift;
    ep_place(p.rows.walked_dims, p.scale_strides, p.shift_strides, p.rows.walked_rank, i, &scale_at, &shift_at);
    if (p.scale_dtype != 0) x *= ep_load(scale, scale_at, p.scale_dtype);
    if (p.shift_dtype != 0) x += ep_load(shift, shift_at, p.shift_dtype);
    ep_store(dst, to + dst_in_row(&p.rows, i), SRC_DTYPE, x);
  }
  if (lane != 0) return;
  ulong mean_at = p.mean;
  ulong inv_std_at = p.inv_std;
  ep_place(p.rows.kept_dims, p.mean_strides, p.inv_std_strides, p.rows.kept_rank, row, &mean_at, &inv_std_at);
  if (p.has_mean != 0) out_mean[mean_at] = (float)mean;
  if (p.has_inv_std != 0) out_inv_std[inv_std_at] = (float)inv_std;
}
