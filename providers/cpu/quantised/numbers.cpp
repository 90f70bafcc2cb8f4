#include "providers/cpu/quantised/numbers.h"

namespace tenon::provider::cpu {

NumberOperands::NumberOperands(const ep_primitive_desc& desc)
    : src_scale(find_operand(desc, EP_ROLE_SRC_SCALE)),
      src_zero(find_operand(desc, EP_ROLE_SRC_ZERO_POINT)),
      weight_scale(find_operand(desc, EP_ROLE_WEIGHT_SCALE)),
      weight_zero(find_operand(desc, EP_ROLE_WEIGHT_ZERO_POINT)),
      dst_scale(find_operand(desc, EP_ROLE_DST_SCALE)),
      dst_zero(find_operand(desc, EP_ROLE_DST_ZERO_POINT)),
      bias(find_operand(desc, EP_ROLE_BIAS)) {}

Refusal why_no_numbers(const ep_primitive_desc& desc, int32_t weight_role) {
  const bool conv = weight_role == EP_ROLE_WEIGHT;
  const ep_quantisation& src = conv ? desc.attributes.convolution.src : desc.attributes.matmul.src;
  const ep_quantisation& weight = conv ? desc.attributes.convolution.weight : desc.attributes.matmul.weight;
  const ep_quantisation& dst = conv ? desc.attributes.convolution.dst : desc.attributes.matmul.dst;
  const uint32_t columns = conv ? 1 : uint32_t{1} << (desc.operands[0].rank - 1);
  if (src.axes != 0 || dst.axes != 0) return Refusal::because("a source or result of several scales");
  if (weight.block[0] != 0 || (weight.axes != 0 && weight.axes != columns)) {
    return Refusal::because("scales of weights along axes 0x%x", weight.axes);
  }
  for (int32_t role : {EP_ROLE_SRC_SCALE, EP_ROLE_WEIGHT_SCALE, EP_ROLE_DST_SCALE, EP_ROLE_BIAS}) {
    const ep_operand_desc* scale = operand(desc, role);
    if (scale != nullptr && scale->dtype != EP_DTYPE_f32)
      return Refusal::because("a scale or bias of %s", dtype_name(scale->dtype));
  }
  return {};
}

}  // namespace tenon::provider::cpu
