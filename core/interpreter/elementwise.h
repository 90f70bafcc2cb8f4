// Element-wise ops: unary, binary and ternary primitives over broadcast operands, the most frequent ops. Internal.
#pragma once

#include <cstdint>

#include "core/ops/op_call.h"
#include "core/primitive/lowering.h"
#include "core/vm/call_note.h"

namespace tenon {

// The number of arguments of an element-wise kind: 1, 2 or 3.
inline uint32_t elementwise_arity(int32_t kind) { return static_cast<uint32_t>(kind - EP_PRIMITIVE_unary + 1); }

// vm::CallNote::operand_inputs of an element-wise op, whose operands are its output and then its arguments.
constexpr uint64_t kElementwiseInputs = UINT64_C(0xedcba9876543210) << 4 | vm::kNoInput;

// The folded operands of one element-wise call; operand 0 is the output.
struct FoldedCall {
  int32_t rank = 1;
  uint32_t operand_count = 0;
  DType compute = DType::none;  // dtype of the inputs (except the condition of `where`)
  int64_t dims[EP_MAX_RANK];
  int64_t strides[4][EP_MAX_RANK];
  const Tensor* tensors[4] = {};  // null: a scalar; [0] is also null until the output is made
};

// Folds `call` for an output of `dims` and `strides`.
void fold_call(const OpCall& call, const Dims& dims, const Dims& strides, FoldedCall* folded);
// Describes the primitive with folded axes. On a device with layouts of its own, all axes are kept, since a layout
// depends on them.
Status lower_elementwise(const OpCall& call, const TensorMeta& output, Lowering* lowering);

}  // namespace tenon
