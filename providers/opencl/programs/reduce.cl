// reduce: the values of rows. A long reduction to few values has parts: one launch writes the value of each part to the
// workspace, as EP_T, and a second one combines them. Lanes take every LANES-th element, and local memory combines
// their values, so a repeated reduction gives the same bits.
#include "sdk/provider/opencl/prelude.cl"
#include "sdk/provider/opencl/elements.cl"
#include "sdk/provider/opencl/rows.cl"
#include "providers/opencl/programs/axes.cl"

#ifndef OP
#define OP p.op
#endif

// Combines the values of the lanes of a group; lane 0 gets the result.
static inline EP_T combined(int op, local EP_T* meeting, EP_T value) {
  const uint lane = (uint)get_local_id(0);
  meeting[lane] = value;
  for (uint step = LANES / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < step) meeting[lane] = ep_reduce_combine(op, meeting[lane], meeting[lane + step]);
  }
  return meeting[lane];
}

kernel void reduce_item(global uchar* dst, global const uchar* src, struct row_parameters p) {
  const ulong row = get_global_id(0);
  if (row >= p.rows) return;
  ulong to, from;
  place_row(&p, row, &to, &from);
  EP_T value = ep_reduce_init(OP);
  for (ulong i = 0; i < p.length; ++i) {
    const EP_T x = ep_load(src, from + src_in_row(&p, i), SRC_DTYPE);
    value = ep_reduce_combine(OP, value, ep_reduce_map(OP, x));
  }
  ep_store(dst, to, SRC_DTYPE, ep_reduce_finish(OP, value, (EP_T)p.length));
}

kernel void reduce_group(global uchar* dst, global const uchar* src, struct row_parameters p) {
  local EP_T meeting[LANES];
  const ulong number = get_group_id(0);
  const ulong row = number / p.parts;
  const ulong begin = (number - row * p.parts) * p.part_length;
  const ulong end = min(begin + p.part_length, p.length);
  ulong to, from;
  place_row(&p, row, &to, &from);
  EP_T value = ep_reduce_init(OP);
  for (ulong i = begin + get_local_id(0); i < end; i += LANES) {
    const EP_T x = ep_load(src, from + src_in_row(&p, i), SRC_DTYPE);
    value = ep_reduce_combine(OP, value, ep_reduce_map(OP, x));
  }
  value = combined(OP, meeting, value);
  if (get_local_id(0) != 0) return;
  if (p.parts == 1) {
    ep_store(dst, to, SRC_DTYPE, ep_reduce_finish(OP, value, (EP_T)p.length));
  } else {
    ((global EP_T*)dst)[p.dst + number] = value;
  }
}

// Combines the parts, which are in the workspace `partial` (p.src: offset in bytes).
kernel void reduce_parts(global uchar* dst, global const uchar* partial, struct row_parameters p) {
  local EP_T meeting[LANES];
  const ulong row = get_group_id(0);
  ulong to, ignored;
  place_row(&p, row, &to, &ignored);
  EP_T value = ep_reduce_init(OP);
  for (ulong i = get_local_id(0); i < p.parts; i += LANES) {
    value = ep_reduce_combine(OP, value, ((global const EP_T*)(partial + p.src))[row * p.parts + i]);
  }
  value = combined(OP, meeting, value);
  if (get_local_id(0) == 0) ep_store(dst, to, SRC_DTYPE, ep_reduce_finish(OP, value, (EP_T)p.length));
}
