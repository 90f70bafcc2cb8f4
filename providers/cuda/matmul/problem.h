// A matmul as cuBLASLt sees it. It thinks in columns: the rows of our DST, one after the other, are the columns of its
// D, so it is asked for D^T = B^T * A^T, with our second operand as its first. Pure: nothing here touches the library.
#pragma once

#include <cstdint>

#include "sdk/provider/implementation.h"

namespace tenon::provider::cuda {

// One matrix in columns: `rows` consecutive elements, then `ld` further the next column.
struct LtMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t ld = 0;
  int64_t batch_stride = 0;
  bool transposed = false;  // what is wanted is the transpose of what lies there
};

inline constexpr int32_t lt_operands = 4;  // D, our SRC, our SRC_B, C
enum LtOperand : int32_t { LT_D = 0, LT_SRC = 1, LT_SRC_B = 2, LT_C = 3 };

struct LtProblem {
  LtMatrix matrices[lt_operands];
  int32_t operands[lt_operands] = {-1, -1, -1, -1};  // indices in the descriptor; C: -1 where there is none
  int64_t batch = 1;                                 // of one call
  // Batch axes that one call cannot express, looped over: how many, how long, and how far each matrix moves.
  int32_t outer_rank = 0;
  int64_t outer_dims[EP_MAX_RANK] = {};
  int64_t outer_strides[lt_operands][EP_MAX_RANK] = {};
  int32_t bias = -1;       // index of the operand that is added as a vector along the rows of DST; -1: none
  int32_t tail_bias = -1;  // index of a bias that must be added afterwards; -1: none
  bool relu = false;
  uint32_t first_epilogue = 0;  // of those that are left for afterwards

  int64_t outer_count() const;
};

// What a call of cuBLASLt may do besides multiplying; each can be left for afterwards instead.
struct LtFusion {
  bool bias = true;
  bool c = true;
  bool relu = true;
};

// The problem of a static matmul descriptor, or why there is none.
Refusal make_problem(const ep_primitive_desc& desc, const LtFusion& fusion, LtProblem* out);

}  // namespace tenon::provider::cuda
