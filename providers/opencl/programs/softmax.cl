// softmax and log-softmax (p.flag 1) of rows: the maximum, the sum of exp(x - maximum), the results.
#include "sdk/provider/opencl/prelude.cl"
#include "sdk/provider/opencl/elements.cl"
#include "providers/opencl/programs/axes.cl"

static inline void store_result(global uchar* dst, const struct row_parameters* p, ulong at, EP_T x, EP_T greatest,
                                EP_T sum, EP_T log_sum) {
  const EP_T shifted = x - greatest;
  ep_store(dst, at, SRC_DTYPE, p->flag != 0 ? shifted - log_sum : ep_div(ep_exp(shifted), sum));
}

kernel void softmax_item(global uchar* dst, global const uchar* src, struct row_parameters p) {
  const ulong row = get_global_id(0);
  if (row >= p.rows) return;
  ulong to, from;
  place_row(&p, row, &to, &from);
  EP_T greatest = ep_lowest();
  for (ulong i = 0; i < p.length; ++i) {
    greatest = ep_max(ep_load(src, from + src_in_row(&p, i), SRC_DTYPE), greatest);
  }
  EP_T sum = 0;
  for (ulong i = 0; i < p.length; ++i) {
    sum += ep_exp(ep_load(src, from + src_in_row(&p, i), SRC_DTYPE) - greatest);
  }
  const EP_T log_sum = ep_log(sum);
  for (ulong i = 0; i < p.length; ++i) {
    const EP_T x = ep_load(src, from + src_in_row(&p, i), SRC_DTYPE);
    store_result(dst, &p, to + dst_in_row(&p, i), x, greatest, sum, log_sum);
  }
}

kernel void softmax_group(global uchar* dst, global const uchar* src, struct row_parameters p) {
  local EP_T meeting[LANES];
  const uint lane = (uint)get_local_id(0);
  ulong to, from;
  place_row(&p, get_group_id(0), &to, &from);
  EP_T greatest = ep_lowest();
  for (ulong i = lane; i < p.length; i += LANES) {
    greatest = ep_max(ep_load(src, from + src_in_row(&p, i), SRC_DTYPE), greatest);
  }
  meeting[lane] = greatest;
  for (uint step = LANES / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < step) meeting[lane] = ep_max(meeting[lane], meeting[lane + step]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  greatest = meeting[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  EP_T sum = 0;
  for (ulong i = lane; i < p.length; i += LANES) {
    sum += ep_exp(ep_load(src, from + src_in_row(&p, i), SRC_DTYPE) - greatest);
  }
  meeting[lane] = sum;
  for (uint step = LANES / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < step) meeting[lane] += meeting[lane + step];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  sum = meeting[0];
  const EP_T log_sum = ep_log(sum);
  for (ulong i = lane; i < p.length; i += LANES) {
    const EP_T x = ep_load(src, from + src_in_row(&p, i), SRC_DTYPE);
    store_result(dst, &p, to + dst_in_row(&p, i), x, greatest, sum, log_sum);
  }
}
