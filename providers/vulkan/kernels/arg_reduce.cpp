// arg_reduce: the position of the greatest or least element along an axis.
#include "providers/vulkan/kernels/element.h"
#include "providers/vulkan/kernels/kernels.h"
#include "providers/vulkan/kernels/rows.h"

namespace tenon::provider::vulkan {
namespace {

uint32_t mask_of(const ep_primitive_desc& desc) {
  const int32_t axis = desc.attributes.arg_reduce.axis;
  return axis < 0 || axis >= EP_MAX_RANK ? 0 : 1U << axis;
}

}  // namespace

Refusal ArgReduce::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  const int32_t op = desc.attributes.arg_reduce.op;
  if (op != EP_REDUCE_max && op != EP_REDUCE_min) return Refusal::because("op %d", op);
  if (Refusal refusal = why_no_rows(device, desc, mask_of(desc))) return refusal;
  if (desc.operands[0].dtype != EP_DTYPE_i64) {
    return Refusal::because("positions of %s", dtype_name(desc.operands[0].dtype));
  }
  return why_not_computed(device.context->physical->features, desc.operands[1].dtype);
}

Refusal ArgReduce::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const RowsSpace space(desc, mask_of(desc));
  const int32_t dtype = desc.operands[1].dtype;
  const Constants constants = {row_threads,
                               width_of(dtype),
                               desc.attributes.arg_reduce.op == EP_REDUCE_max ? 1U : 0U,
                               static_cast<uint32_t>(dtype),
                               desc.attributes.arg_reduce.last != 0 ? 1U : 0U,
                               0,
                               0,
                               0,
                               static_cast<uint32_t>(block_for(device, space, 1)),
                               static_cast<uint32_t>(dtype_size(dtype))};
  std::shared_ptr<Pipeline> pipeline;
  const std::string module = module_name("arg_reduce", class_of_dtype(dtype), device.context->physical->features);
  if (Refusal refusal = compile(device, module, constants, &pipeline)) return refusal;
  *out = make_primitive<RowPrimitive>(device, space, lane_bits_on(device, space), row_threads, std::move(pipeline));
  return {};
}

}  // namespace tenon::provider::vulkan
