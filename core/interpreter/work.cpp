#include "core/interpreter/work.h"

#include <algorithm>

namespace tenon {
namespace {

// The number of elements of an operand in memory: an axis along which it is repeated counts once.
uint64_t elements(const PreparedOperand& operand) {
  uint64_t count = 1;
  for (int32_t axis = 0; axis < operand.dims.rank(); ++axis) {
    const bool repeated = operand.token == 0 && operand.strides[axis] == 0;
    count *= repeated ? 1 : static_cast<uint64_t>(std::max<int64_t>(0, operand.dims[axis]));
  }
  return count;
}

uint64_t all_elements(const PreparedOperand& operand) {
  uint64_t count = 1;
  for (const int64_t dim : operand.dims) count *= static_cast<uint64_t>(std::max<int64_t>(0, dim));
  return count;
}

}  // namespace

Work work_of(const Prepared& prepared) {
  Work work;
  uint64_t largest = 0;
  for (const PreparedOperand& operand : prepared.operands) {
    work.bytes += static_cast<uint64_t>(dtype_bytes(operand.dtype, static_cast<int64_t>(elements(operand))));
    largest = std::max(largest, all_elements(operand));
  }
  work.flops = largest;
  if (prepared.op == nullptr || prepared.operands.size() < 3) return work;
  const Dims &result = prepared.operands[0].dims, &left = prepared.operands[1].dims, &right = prepared.operands[2].dims;
  if (prepared.op->kind == EP_PRIMITIVE_matmul && left.rank() > 0) {
    work.flops = 2 * all_elements(prepared.operands[0]) * static_cast<uint64_t>(left[left.rank() - 1]);
  } else if (prepared.op->kind == EP_PRIMITIVE_convolution && right.rank() > 1 && right[0] > 0) {
    // A weight has the result's channels first; the weight of a transposed convolution has the source's channels first.
    const bool transposed = result.rank() > 1 && right[0] != result[1];
    work.flops = 2 * all_elements(prepared.operands[transposed ? 1 : 0]) * all_elements(prepared.operands[2]) /
                 static_cast<uint64_t>(right[0]);
  }
  return work;
}

}  // namespace tenon
