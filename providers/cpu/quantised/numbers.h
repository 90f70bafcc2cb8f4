// The scales and zero points of a product, its operands beside the factors.
#pragma once

#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// Where the numbers that a launch scales by lie: operand numbers, or -1.
struct NumberOperands {
  int32_t src_scale, src_zero, weight_scale, weight_zero, dst_scale, dst_zero, bias;
  explicit NumberOperands(const ep_primitive_desc& desc);
};

// Why scales, zero points and bias are not what the products here take.
Refusal why_no_numbers(const ep_primitive_desc& desc, int32_t weight_role);

}  // namespace tenon::provider::cpu
