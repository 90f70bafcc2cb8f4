// A matmul as cuBLASLt sees it. The library stores matrices by columns: rows of our DST are columns of its D. So the
// call computes D^T = B^T * A^T, and our second operand is its first. Pure: no code here calls the library.
#pragma once

#include <cstdint>

#include "sdk/provider/implementation.h"

namespace tenon::provider::cuda {

// One matrix by columns: a column has `rows` consecutive elements, and the next column begins `ld` elements further.
struct LtMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t ld = 0;
  int64_t batch_stride = 0;
  bool transposed = false;  // the call uses the transpose of the stored matrix
};

inline constexpr int32_t lt_operands = 4;  // D, our SRC, our SRC_B, C
enum LtOperand : int32_t { LT_D = 0, LT_SRC = 1, LT_SRC_B = 2, LT_C = 3 };

struct LtProblem {
  LtMatrix matrices[lt_operands];
  int32_t operands[lt_operands] = {-1, -1, -1, -1};  // operand numbers in the descriptor; -1 if there is no C
  int64_t batch = 1;                                 // batch of one call
  // The batch axes that one call cannot express; a loop runs over them.
  int32_t outer_rank = 0;
  int64_t outer_dims[EP_MAX_RANK] = {};
  int64_t outer_strides[lt_operands][EP_MAX_RANK] = {};
  int32_t bias = -1;       // operand that is added as a vector along the rows of DST; -1: none
  int32_t tail_bias = -1;  // bias that a Tail adds; -1: none
  bool relu = false;
  uint32_t first_epilogue = 0;  // first epilogue of the Tail

  int64_t outer_count() const;
};

// The steps that a call of cuBLASLt does besides the product. A Tail does the rest.
struct LtFusion {
  bool bias = true;
  bool c = true;
  bool relu = true;
};

// The problem of a static matmul descriptor, or the refusal.
Refusal make_problem(const ep_primitive_desc& desc, const LtFusion& fusion, LtProblem* out);

}  // namespace tenon::provider::cuda
