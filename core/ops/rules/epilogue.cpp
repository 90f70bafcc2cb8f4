#include "core/ops/rules/epilogue.h"

#include "primitives/table/table.h"

namespace tenon::ops {

int32_t scalars_of(const Epilogue& epilogue) {
  if (epilogue.op->kind == EP_PRIMITIVE_unary) return table::unary_row(epilogue.op->scalar_op)->parameters;
  return epilogue.input < 0 ? 1 : 0;
}

void lower_epilogue(const Epilogue& epilogue, const Addend* other, Lowering* lowering) {
  const auto dtype = static_cast<DType>(lowering->desc.operands[0].dtype);
  ep_epilogue& lowered = lowering->desc.epilogues[lowering->desc.epilogue_count];
  lowered.arity = epilogue.op->kind == EP_PRIMITIVE_unary ? 1 : 2;
  lowered.op = epilogue.op->scalar_op;
  if (other != nullptr) {
    lowered.role = EP_ROLE_EPILOGUE_0 + static_cast<int32_t>(lowering->desc.epilogue_count);
    lowering->input(lowered.role, epilogue.input, dtype, other->dims, other->strides);
  }
  const int32_t scalars = scalars_of(epilogue);
  if (scalars != 0) lowered.scalar = epilogue.scalar;
  for (int32_t i = 0; i < scalars; ++i) {
    lowering->scalar_dtypes[static_cast<size_t>(epilogue.scalar + i)] = dtype;
  }
  ++lowering->desc.epilogue_count;
}

}  // namespace tenon::ops
