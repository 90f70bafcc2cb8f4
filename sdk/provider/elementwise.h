// Checks of element-wise descriptors and epilogues that every provider needs: the operands, the scalar function, its
// dtype, and the dtype of the destination.
#pragma once

#include <initializer_list>

#include "sdk/provider/implementation.h"
#include "sdk/provider/scalar_rows.h"

namespace tenon::provider {

// Refuses unless the operands have exactly `roles`, in that order, and none has a packed type. Operands in memory must
// have the rank of the first one, the destination. The others may be scalars.
inline Refusal check_operands(const ep_primitive_desc& desc, std::initializer_list<int32_t> roles) {
  if (desc.operand_count != roles.size()) return Refusal::because("%u operands", desc.operand_count);
  uint32_t i = 0;
  for (int32_t role : roles) {
    const ep_operand_desc& operand = desc.operands[i];
    if (operand.role != role) return Refusal::because("operand %u has role %d", i, operand.role);
    if (dtype_size(operand.dtype) == 0) return Refusal::because("%s is packed", dtype_name(operand.dtype));
    if (!is_scalar(operand) && operand.rank != desc.operands[0].rank) {
      return Refusal::because("operand %u has rank %d, the destination %d", i, operand.rank, desc.operands[0].rank);
    }
    ++i;
  }
  if (is_scalar(desc.operands[0])) return Refusal::because("the destination is a scalar");
  return {};
}

// Refuses a scalar function that is unknown or does not take `dtype`. `arity` (such as "unary") and `name` are for the
// message.
inline Refusal check_row(const scalar::RowFacts& facts, const char* arity, int32_t op, const char* name,
                         int32_t dtype) {
  if (facts.known && scalar::defined_on(facts.domain, dtype)) return {};
  return Refusal::because("%s row %d (%s) is not defined on %s", arity, op, name, dtype_name(dtype));
}

// Refuses unless the destination has the result dtype of the scalar function for inputs of `dtype`.
inline Refusal check_result(const ep_primitive_desc& desc, const scalar::RowFacts& facts, int32_t dtype) {
  const int32_t expected = facts.bool_result ? EP_DTYPE_bool : dtype;
  if (desc.operands[0].dtype == expected) return {};
  return Refusal::because("the destination is %s, not %s", dtype_name(desc.operands[0].dtype), dtype_name(expected));
}

// Refuses an epilogue unless it is a scalar function that gives floats, the destination has floats, and its operand and
// scalar exist.
inline Refusal check_epilogue(const ep_primitive_desc& desc, const ep_epilogue& epilogue) {
  const int32_t dtype = desc.operands[0].dtype;
  if (!is_floating(dtype)) return Refusal::because("epilogues on %s", dtype_name(dtype));
  const scalar::RowFacts facts = epilogue.arity == 1   ? scalar::unary_facts(epilogue.op)
                                 : epilogue.arity == 2 ? scalar::binary_facts(epilogue.op)
                                                       : scalar::RowFacts();
  if (!facts.known || facts.bool_result || !scalar::defined_on(facts.domain, EP_DTYPE_f32)) {
    return Refusal::because("no epilogue %d of arity %d", epilogue.op, epilogue.arity);
  }
  if (epilogue.arity == 2 && epilogue.role != 0 && find_operand(desc, epilogue.role) < 0) {
    return Refusal::because("no operand of role %d", epilogue.role);
  }
  if (epilogue.scalar < 0 || epilogue.scalar >= EP_MAX_SCALARS) {
    return Refusal::because("epilogue scalar %d", epilogue.scalar);
  }
  return {};
}

// Bit i is set if input i, which is operand i + 1, is a launch scalar.
inline uint32_t scalar_mask(const ep_primitive_desc& desc) {
  uint32_t mask = 0;
  for (uint32_t i = 1; i < desc.operand_count; ++i) mask |= is_scalar(desc.operands[i]) ? 1U << (i - 1) : 0U;
  return mask;
}

}  // namespace tenon::provider
