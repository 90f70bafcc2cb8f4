// The scales, zero points and bias of a product.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// Operand numbers of the scales, zero points and bias; -1 if absent.
struct NumberOperands {
  int32_t src_scale, src_zero, weight_scale, weight_zero, dst_scale, dst_zero, bias;
  explicit NumberOperands(const ep_primitive_desc& desc);
};

// The reason why scales, zero points or bias are not supported here.
Refusal why_no_numbers(const ep_primitive_desc& desc, int32_t weight_role);

}  // namespace tenon::provider::cpu
