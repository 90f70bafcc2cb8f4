#include "core/ops/rules/epilogue.h"

#include "core/ops/functors/apply.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::ops {
namespace {

void add_epilogue(Lowering* lowering, int32_t arity, int32_t op, int32_t role, int32_t scalar) {
  ep_epilogue& epilogue = lowering->desc.epilogues[lowering->desc.epilogue_count++];
  epilogue.arity = arity;
  epilogue.op = op;
  epilogue.role = role;
  epilogue.scalar = scalar;
}

}  // namespace

Result<Activation> find_activation(std::string_view op, std::string_view name, double a, double b) {
  if (name == "none") return Activation{};
  if (name == "clamp") return Activation{kClampActivation, a, b};
  const table::ScalarRow* row = table::scalar_row(1, name);
  if (row == nullptr || row->result != table::ResultType::SAME || !table::in_domain(row->domain, DType::f32)) {
    return Status(
        Code::invalid_argument,
        fmt::format("{}: activation '{}' is not one of 'none', 'clamp' and the unary ops on floats.", op, name));
  }
  return Activation{row->id, a, b};
}

Tensor activate(const Tensor& x, const Activation& activation) {
  if (activation.id == 0) return x;
  if (activation.id == kClampActivation) return clamp(x, Scalar(activation.a), Scalar(activation.b));
  const Scalar scalars[] = {Scalar(activation.a), Scalar(activation.b)};
  for (const OpInfo& op : op_rows) {
    if (op.form == OpForm::elementwise && op.kind == EP_PRIMITIVE_unary && op.scalar_op == activation.id) {
      return elementwise::unary_slow(op, 0, nullptr, x, scalars);
    }
  }
  return x;
}

void lower_epilogue(const OpCall& call, int32_t activation, Lowering* lowering, const Dims& residual_dims,
                    const Dims& residual_strides) {
  const auto dtype = static_cast<DType>(lowering->desc.operands[0].dtype);
  if (call.inputs.size() > 3 && call.inputs[3] != nullptr) {
    lowering->input(EP_ROLE_EPILOGUE_0, 3, dtype, residual_dims, residual_strides);
    add_epilogue(lowering, 2, EP_BINARY_add, EP_ROLE_EPILOGUE_0, 0);
  }
  constexpr auto slot = static_cast<int32_t>(kActivationSlot);
  if (activation == 0) return;
  lowering->scalar_dtypes[kActivationSlot] = dtype;
  lowering->scalar_dtypes[kActivationSlot + 1] = dtype;
  if (activation != kClampActivation) {
    add_epilogue(lowering, 1, activation, 0, slot);
    return;
  }
  add_epilogue(lowering, 2, EP_BINARY_maximum, 0, slot);
  add_epilogue(lowering, 2, EP_BINARY_minimum, 0, slot + 1);
}

}  // namespace tenon::ops
