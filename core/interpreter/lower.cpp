#include "core/interpreter/lower.h"

#include "core/device/deterministic.h"
#include "core/interpreter/elementwise.h"
#include "loader/settings/settings.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

Status lower(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  lowering->desc.kind = call.op->kind;
  if (call.op->form == OpForm::elementwise) return lower_elementwise(call, outputs[0], lowering);
  return call.op->lower(call, outputs, lowering);
}

// A scalar operand of an element-wise op also counts as an argument.
uint64_t operand_inputs(const Lowering& lowering, const OpInfo& op) {
  if (op.form == OpForm::elementwise) return kElementwiseInputs;
  uint64_t all = vm::kNoInputs;
  for (uint32_t i = 0; i < lowering.desc.operand_count; ++i) {
    if (lowering.sources[i].input < 0) continue;
    all &= ~(vm::kNoInput << 4 * i);
    all |= static_cast<uint64_t>(lowering.sources[i].input) << 4 * i;
  }
  return all;
}

// The precision that the call asks for, or else the setting.
int32_t precision_of(const OpCall& call) {
  static_assert(static_cast<int32_t>(loader::Precision::relaxed) == EP_PRECISION_RELAXED &&
                static_cast<int32_t>(loader::Precision::full) == EP_PRECISION_FULL);
  if (call.precision != Precision::stated) return static_cast<int32_t>(call.precision);
  return static_cast<int32_t>(loader::settings().precision);
}

}  // namespace

Status lower_call(const OpCall& call, std::span<const TensorMeta> outputs, LoweredCall* lowered) {
  Lowering& lowering = lowered->lowering;
  TENON_RETURN_IF_ERROR(lower(call, outputs, &lowering));
  if (lowering.desc.operand_count > call.inputs.size() + call.outputs.size()) {
    return Status(
        Subject{call.op->name}, Code::internal,
        fmt::format("the primitive has {} operands, but the op has fewer tensors.", lowering.desc.operand_count));
  }
  for (uint32_t slot = 0; slot < EP_MAX_SCALARS; ++slot) {
    if (lowering.scalar_dtypes[slot] == DType::none) continue;
    if (slot >= call.scalars.size()) {
      return Status(Subject{call.op->name}, Code::invalid_argument,
                    fmt::format("scalar {} is missing; the call has {} scalars.", slot, call.scalars.size()));
    }
    lowered->scalars[slot] = call.scalars[slot].to_abi(lowering.scalar_dtypes[slot]);
    lowered->scalar_count = slot + 1;
  }
  lowering.desc.precision = precision_of(call);
  if (are_deterministic_algorithms_enabled()) lowering.desc.flags |= EP_PRIMITIVE_FLAG_DETERMINISTIC;
  lowered->operand_inputs = operand_inputs(lowering, *call.op);
  return {};
}

}  // namespace tenon
