#include "core/interpreter/elementwise.h"

#include <algorithm>

#include "core/device/device_state.h"
#include "primitives/infer/broadcast.h"
#include "primitives/simplify/simplify.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

constexpr int32_t kSourceRoles[] = {EP_ROLE_SRC, EP_ROLE_SRC_B, EP_ROLE_SRC_C};

const Tensor* argument(const OpCall& call, size_t index) {
  return index < call.inputs.size() ? call.inputs[index] : nullptr;
}

// Fills `folded`, not folded yet. `all` gets the strides of the operands that have strides.
[[gnu::always_inline]] inline int32_t broadcast_call(const OpCall& call, const Dims& dims, const Dims& strides,
                                                     FoldedCall* folded, int64_t** all) {
  const uint32_t arity = elementwise_arity(call.op->kind);
  folded->operand_count = arity + 1;
  int32_t used = 0;
  const auto use = [&](uint32_t operand, const Dims& values) {
    std::copy(values.begin(), values.end(), folded->strides[operand]);
    all[used++] = folded->strides[operand];
  };
  std::copy(dims.begin(), dims.end(), folded->dims);
  use(0, strides);
  folded->compute = DType::none;
  for (uint32_t i = 0; i < arity; ++i) {
    const Tensor* input = argument(call, i);
    folded->tensors[i + 1] = input;
    if (input == nullptr) continue;
    if (!(i == 0 && call.op->cond_first)) folded->compute = input->dtype();
    use(i + 1, input->impl()->dims == dims
                   ? input->impl()->strides
                   : infer::broadcast_strides(input->impl()->dims, input->impl()->strides, dims));
  }
  folded->rank = dims.rank();
  return used;
}

bool keeps_axes(const OpCall& call) {
  return std::any_of(call.inputs.begin(), call.inputs.end(),
                     [](const Tensor* input) { return input != nullptr && input->impl()->device->layouts; });
}

}  // namespace

void fold_call(const OpCall& call, const Dims& dims, const Dims& strides, FoldedCall* folded) {
  int64_t* all[4];
  const int32_t used = broadcast_call(call, dims, strides, folded, all);
  folded->rank = simplify::fold_elementwise(dims.rank(), folded->dims, all, used);
}

Status lower_elementwise(const OpCall& call, const TensorMeta& output, Lowering* lowering) {
  FoldedCall folded;
  if (int64_t * all[4]; output.dims.rank() != 0 && keeps_axes(call)) {
    broadcast_call(call, output.dims, output.strides, &folded, all);
  } else {
    fold_call(call, output.dims, output.strides, &folded);
  }
  const auto rank = static_cast<size_t>(folded.rank);
  const Dims dims(std::span<const int64_t>(folded.dims, rank));
  const auto strides = [&](uint32_t operand) { return Dims(std::span<const int64_t>(folded.strides[operand], rank)); };
  lowering->desc.attributes.unary.op = call.op->scalar_op;
  lowering->output(EP_ROLE_DST, 0, output.dtype, dims, strides(0));
  const bool is_unary = call.op->kind == EP_PRIMITIVE_unary;
  for (uint32_t i = 0; i + 1 < folded.operand_count; ++i) {
    const bool condition = i == 0 && call.op->cond_first;
    const DType dtype = condition ? DType::boolean : folded.compute;
    if (folded.tensors[i + 1] != nullptr) {
      lowering->input(kSourceRoles[i], static_cast<int>(i), dtype, dims, strides(i + 1));
    } else {
      lowering->scalar(kSourceRoles[i], dtype);
    }
  }
  if (is_unary) {
    for (size_t slot = 0; slot < call.scalars.size(); ++slot) lowering->scalar_dtypes[slot] = folded.compute;
  }
  return {};
}

}  // namespace tenon
