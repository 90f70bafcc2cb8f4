// Checks of element-wise descriptors that every provider needs: the operands, the scalar function, its dtype, and the
// dtype of the destination.
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

}  // namespace tenon::provider
