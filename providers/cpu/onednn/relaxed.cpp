#include "providers/cpu/onednn/relaxed.h"

#include "providers/cpu/onednn/version.h"

namespace tenon::provider::cpu {

Refusal why_not_relaxed(const ep_device& device, const ep_primitive_desc& desc) {
  if (desc.precision != EP_PRECISION_RELAXED) return Refusal::because("the program does not permit tier relaxed");
  if (desc.operands[0].dtype != EP_DTYPE_f32) {
    return Refusal::because("%s, not f32", dtype_name(desc.operands[0].dtype));
  }
  if (device.simd != SimdLevel::avx3 || !has_bf16_products()) {
    return Refusal::because("products of bf16 need avx512_core_bf16");
  }
  return {};
}

ep_primitive_desc with_rounded_factors(const ep_primitive_desc& desc) {
  ep_primitive_desc rounded = desc;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    ep_operand_desc& operand = rounded.operands[i];
    const bool factor = operand.role == EP_ROLE_SRC || operand.role == EP_ROLE_SRC_B ||
                        operand.role == EP_ROLE_WEIGHT || operand.role == EP_ROLE_GRADIENT;
    if (factor && operand.dtype == EP_DTYPE_f32) operand.dtype = EP_DTYPE_bf16;
  }
  return rounded;
}

}  // namespace tenon::provider::cpu
