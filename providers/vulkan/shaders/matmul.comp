#version 460
#extension GL_GOOGLE_include_directive : require
// matmul: a workgroup of 16 x 16 invocations computes a tile of 64 x 64 results, 4 x 4 per invocation, from slices of
// 16 along k in shared memory. Operands are strided, so a transpose only changes the order in which a slice is read.
#extension GL_EXT_control_flow_attributes : require
#include "class.glsl"
#include "sdk/provider/glsl/prelude.glsl"

layout(local_size_x = 256) in;
layout(constant_id = 2) const int DST_DTYPE = 12;
layout(constant_id = 3) const int SRC_DTYPE = 12;
layout(constant_id = 4) const int SRC_B_DTYPE = 12;
layout(constant_id = 5) const int BIAS_DTYPE = 0;  // 0: no bias
// Epilogues: arity (0: none), scalar function, dtype of the tensor operand (0: a scalar).
layout(constant_id = 6) const int ARITY_0 = 0;
layout(constant_id = 7) const int OP_0 = 0;
layout(constant_id = 8) const int DTYPE_0 = 0;
layout(constant_id = 9) const int ARITY_1 = 0;
layout(constant_id = 10) const int OP_1 = 0;
layout(constant_id = 11) const int DTYPE_1 = 0;
layout(constant_id = 12) const int ARITY_2 = 0;
layout(constant_id = 13) const int OP_2 = 0;
layout(constant_id = 14) const int DTYPE_2 = 0;
layout(constant_id = 15) const int ARITY_3 = 0;
layout(constant_id = 16) const int OP_3 = 0;
layout(constant_id = 17) const int DTYPE_3 = 0;

const int TILE = 64;
const int SLICE = 16;
// dst, src, src_b, bias, operands of the epilogues
const int OPERANDS = 8;

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Problem {
  uvec2 address[OPERANDS];
  uvec2 scalars[8];  // two for each epilogue
  uint m, n, k;
  uint batch_rank;
  uint batch_dims[6];
  uint batch_strides[OPERANDS][6];
  uint row_strides[OPERANDS];
  uint column_strides[OPERANDS];
};

layout(push_constant, scalar) uniform Push {
  uvec2 problem;
  uint tiles_n;      // tiles along n
  uint first_batch;
  uint first_tile;
  uint tiles;
} push;

// One column of padding. Without it, a slice that is contiguous along k would be written to one bank of shared memory.
// Slices of 8-byte elements fill the 16 KiB that every device has.
#ifdef WIDE
const int PITCH = TILE;
#else
const int PITCH = TILE + 4;
#endif
shared T slice_a[SLICE][PITCH];
shared T slice_b[SLICE][PITCH];

#if defined(CLASS_f32)
#define ROW_FUNCTION unary_0
#define ROW_OP OP_0
#include "unary_row.glsl"
#define ROW_FUNCTION unary_1
#define ROW_OP OP_1
#include "unary_row.glsl"
#define ROW_FUNCTION unary_2
#define ROW_OP OP_2
#include "unary_row.glsl"
#define ROW_FUNCTION unary_3
#define ROW_OP OP_3
#include "unary_row.glsl"
#define ROW_FUNCTION binary_0
#define ROW_OP OP_0
#include "binary_row.glsl"
#define ROW_FUNCTION binary_1
#define ROW_OP OP_1
#include "binary_row.glsl"
#define ROW_FUNCTION binary_2
#define ROW_OP OP_2
#include "binary_row.glsl"
#define ROW_FUNCTION binary_3
#define ROW_OP OP_3
#include "binary_row.glsl"
#endif

uint batch_offset(Problem problem, uint batch, const int operand) {
  uint at = 0u;
  for (int axis = int(problem.batch_rank) - 1; axis >= 0; --axis) {
    const uint quotient = batch / problem.batch_dims[axis];
    at += (batch - quotient * problem.batch_dims[axis]) * problem.batch_strides[operand][axis];
    batch = quotient;
  }
  return at;
}

T operand_at(Problem problem, const int operand, const int dtype, uint batch, uint row, uint column) {
  return load(problem.address[operand],
              batch_offset(problem, batch, operand) + row * problem.row_strides[operand] +
                  column * problem.column_strides[operand],
              dtype);
}

T finished(Problem problem, T value, uint batch, uint row, uint column) {
  if (BIAS_DTYPE != 0) value = ep_add(value, operand_at(problem, 3, BIAS_DTYPE, batch, row, column));
#if defined(CLASS_f32)
#define EPILOGUE(i)                                                                                           \
  if (ARITY_##i == 1) {                                                                                       \
    value = unary_##i(value, from_pair(problem.scalars[2 * i]), from_pair(problem.scalars[2 * i + 1]));        \
  } else if (ARITY_##i == 2) {                                                                                \
    value = binary_##i(value, DTYPE_##i != 0 ? operand_at(problem, 4 + i, DTYPE_##i, batch, row, column)       \
                                             : from_pair(problem.scalars[2 * i]));                            \
  }
  EPILOGUE(0)
  EPILOGUE(1)
  EPILOGUE(2)
  EPILOGUE(3)
#endif
  return value;
}

void main() {
  Problem problem = Problem(push.problem);
  const uint me = gl_LocalInvocationID.x;
  const uint batch = push.first_batch + gl_WorkGroupID.z;
  const uint number = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  if (number >= push.tiles) return;  // the whole workgroup returns
  const uint tile = push.first_tile + number;
  const uint row0 = tile / push.tiles_n * uint(TILE);
  const uint column0 = tile % push.tiles_n * uint(TILE);
  const uint a0 = batch_offset(problem, batch, 1);
  const uint b0 = batch_offset(problem, batch, 2);
  const bool a_along_k = problem.column_strides[1] == 1u;
  const bool b_along_k = problem.row_strides[2] == 1u && problem.column_strides[2] != 1u;
  const uint my_row = me / 16u * 4u;
  const uint my_column = me % 16u * 4u;

  T sums[4][4];
  [[unroll]] for (int i = 0; i < 4; ++i) {
    [[unroll]] for (int j = 0; j < 4; ++j) sums[i][j] = T(0);
  }
  for (uint k0 = 0u; k0 < problem.k; k0 += uint(SLICE)) {
    for (uint i = 0u; i < 4u; ++i) {
      const uint number = i * 256u + me;
      const uint ar = a_along_k ? number / uint(SLICE) : number % uint(TILE);
      const uint ak = a_along_k ? number % uint(SLICE) : number / uint(TILE);
      T a = T(0);
      if (row0 + ar < problem.m && k0 + ak < problem.k) {
        a = load(problem.address[1], a0 + (row0 + ar) * problem.row_strides[1] + (k0 + ak) * problem.column_strides[1],
                 SRC_DTYPE);
      }
      slice_a[ak][ar] = a;
      const uint bc = b_along_k ? number / uint(SLICE) : number % uint(TILE);
      const uint bk = b_along_k ? number % uint(SLICE) : number / uint(TILE);
      T b = T(0);
      if (column0 + bc < problem.n && k0 + bk < problem.k) {
        b = load(problem.address[2],
                 b0 + (k0 + bk) * problem.row_strides[2] + (column0 + bc) * problem.column_strides[2], SRC_B_DTYPE);
      }
      slice_b[bk][bc] = b;
    }
    barrier();
    for (int k = 0; k < SLICE; ++k) {
      T a[4];
      T b[4];
      [[unroll]] for (int i = 0; i < 4; ++i) {
        a[i] = slice_a[k][my_row + uint(i)];
        b[i] = slice_b[k][my_column + uint(i)];
      }
      [[unroll]] for (int i = 0; i < 4; ++i) {
        [[unroll]] for (int j = 0; j < 4; ++j) sums[i][j] += a[i] * b[j];
      }
    }
    barrier();
  }
  [[unroll]] for (int i = 0; i < 4; ++i) {
    [[unroll]] for (int j = 0; j < 4; ++j) {
      const uint row = row0 + my_row + uint(i);
      const uint column = column0 + my_column + uint(j);
      if (row >= problem.m || column >= problem.n) continue;
      store(problem.address[0],
            batch_offset(problem, batch, 0) + row * problem.row_strides[0] + column * problem.column_strides[0],
            DST_DTYPE, finished(problem, wrap(sums[i][j]), batch, row, column));
    }
  }
}
