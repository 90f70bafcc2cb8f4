// matmul: batched, with strided operands, bias and epilogues. SRC_DTYPE is the dtype of the result; A_DTYPE and B_DTYPE
// are the dtypes of the sources.
#include "providers/opencl/programs/tail.cl"
#include "providers/opencl/programs/tile.cl"

#define BATCH_AXES 6
#define ROWS 6     // index of the row axis in `strides`
#define COLUMNS 7

// Mirrors MatmulParameters of kernels/matmul.cpp.
struct matmul_parameters {
  ulong m;
  ulong n;
  ulong k;
  ulong batch_dims[BATCH_AXES];
  ulong offsets[SLOTS];
  ulong scalars[8];
  ulong strides[SLOTS][8];
  int batch_rank;
  int unused;
};

static inline ulong batch_place(const struct matmul_parameters* p, int slot, ulong batch) {
  ulong at = p->offsets[slot];
  for (int axis = p->batch_rank - 1; axis >= 0; --axis) {
    const ulong quotient = batch / p->batch_dims[axis];
    at += (batch - quotient * p->batch_dims[axis]) * p->strides[slot][axis];
    batch = quotient;
  }
  return at;
}

kernel void matmul(global uchar* dst, global const uchar* a, global const uchar* b, TAIL_ARGUMENTS,
                   struct matmul_parameters p) {
  local EP_T slice_a[SLICE * PITCH];
  local EP_T slice_b[SLICE * PITCH];
  const uint me = (uint)get_local_id(0);
  const ulong tiles_n = (p.n + TILE - 1) / TILE;
  const ulong tiles = tiles_n * ((p.m + TILE - 1) / TILE);
  const ulong batch = get_group_id(0) / tiles;
  const ulong tile = get_group_id(0) - batch * tiles;
  const ulong row0 = tile / tiles_n * TILE;
  const ulong column0 = tile % tiles_n * TILE;
  const ulong a0 = batch_place(&p, SLOT_A, batch);
  const ulong b0 = batch_place(&p, SLOT_B, batch);
  const bool a_along_k = p.strides[SLOT_A][COLUMNS] == 1;
  const bool b_along_k = p.strides[SLOT_B][ROWS] == 1 && p.strides[SLOT_B][COLUMNS] != 1;
  const int my_row = (int)me / 16 * 4;
  const int my_column = (int)me % 16 * 4;
  EP_T sums[16];
  for (int i = 0; i < 16; ++i) sums[i] = 0;
  for (ulong k0 = 0; k0 < p.k; k0 += SLICE) {
    for (uint i = 0; i < 4; ++i) {
      const uint number = i * 256 + me;
      const uint ar = a_along_k ? number / SLICE : number % TILE;
      const uint ak = a_along_k ? number % SLICE : number / TILE;
      EP_T x = 0;
      if (row0 + ar < p.m && k0 + ak < p.k) {
        x = ep_load(a, a0 + (row0 + ar) * p.strides[SLOT_A][ROWS] + (k0 + ak) * p.strides[SLOT_A][COLUMNS], A_DTYPE);
      }
      slice_a[ak * PITCH + ar] = x;
      const uint bc = b_along_k ? number / SLICE : number % TILE;
      const uint bk = b_along_k ? number % SLICE : number / TILE;
      EP_T y = 0;
      if (column0 + bc < p.n && k0 + bk < p.k) {
        y = ep_load(b, b0 + (k0 + bk) * p.strides[SLOT_B][ROWS] + (column0 + bc) * p.strides[SLOT_B][COLUMNS],
                    B_DTYPE);
      }
      slice_b[bk * PITCH + bc] = y;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    multiply_slice(slice_a, slice_b, sums, my_row, my_column);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      const ulong row = row0 + my_row + i;
      const ulong column = column0 + my_column + j;
      if (row >= p.m || column >= p.n) continue;
#define PLACE(slot) (batch_place(&p, slot, batch) + row * p.strides[slot][ROWS] + column * p.strides[slot][COLUMNS])
      EP_T value = sums[4 * i + j];
      FINISH(value, PLACE)
      ep_store(dst, PLACE(SLOT_DST), SRC_DTYPE, value);
    }
  }
}
