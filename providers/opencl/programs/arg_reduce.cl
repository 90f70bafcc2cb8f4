// arg_reduce: the position of the greatest (p.op 1) or least element of a row. NaN wins over every number; among equal
// elements the first wins, or the last if p.flag is 1.
#include "sdk/provider/opencl/prelude.cl"
#include "sdk/provider/opencl/elements.cl"
#include "providers/opencl/programs/axes.cl"

#define NOWHERE 0xfffffffffffffffful

// True if x at position i replaces y at position k.
static inline bool better(const struct row_parameters* p, EP_T x, ulong i, EP_T y, ulong k) {
  if (k == NOWHERE) return true;
  const bool x_nan = ep_isnan(x);
  const bool y_nan = ep_isnan(y);
  if (x_nan != y_nan) return x_nan;
  if (!x_nan && x != y) return p->op == 1 ? x > y : x < y;
  return p->flag != 0 ? i > k : i < k;
}

kernel void arg_reduce_item(global long* dst, global const uchar* src, struct row_parameters p) {
  const ulong row = get_global_id(0);
  if (row >= p.rows) return;
  ulong to, from;
  place_row(&p, row, &to, &from);
  EP_T value = 0;
  ulong place = NOWHERE;
  for (ulong i = 0; i < p.length; ++i) {
    const EP_T x = ep_load(src, from + src_in_row(&p, i), SRC_DTYPE);
    if (!better(&p, x, i, value, place)) continue;
    value = x;
    place = i;
  }
  dst[to] = (long)place;
}

kernel void arg_reduce_group(global long* dst, global const uchar* src, struct row_parameters p) {
  local EP_T values[LANES];
  local ulong places[LANES];
  const uint lane = (uint)get_local_id(0);
  ulong to, from;
  place_row(&p, get_group_id(0), &to, &from);
  EP_T value = 0;
  ulong place = NOWHERE;
  for (ulong i = lane; i < p.length; i += LANES) {
    const EP_T x = ep_load(src, from + src_in_row(&p, i), SRC_DTYPE);
    if (!better(&p, x, i, value, place)) continue;
    value = x;
    place = i;
  }
  values[lane] = value;
  places[lane] = place;
  for (uint step = LANES / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane >= step || places[lane + step] == NOWHERE) continue;
    if (!better(&p, values[lane + step], places[lane + step], values[lane], places[lane])) continue;
    values[lane] = values[lane + step];
    places[lane] = places[lane + step];
  }
  if (lane == 0) dst[to] = (long)places[0];
}
