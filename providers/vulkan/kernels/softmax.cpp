// softmax and log-softmax along an axis.
#include "providers/vulkan/kernels/element.h"
#include "providers/vulkan/kernels/kernels.h"
#include "providers/vulkan/kernels/rows.h"

namespace tenon::provider::vulkan {
namespace {

constexpr int64_t kept_per_lane = 12;  // the same number stands in shaders/softmax.comp

uint32_t mask_of(const ep_primitive_desc& desc) {
  const int32_t axis = desc.attributes.softmax.axis;
  return axis < 0 || axis >= EP_MAX_RANK ? 0 : 1U << axis;
}

}  // namespace

Refusal Softmax::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (Refusal refusal = why_no_rows(device, desc, mask_of(desc))) return refusal;
  const int32_t dtype = desc.operands[1].dtype;
  if (desc.operands[0].dtype != dtype) {
    return Refusal::because("a result of %s, not %s", dtype_name(desc.operands[0].dtype), dtype_name(dtype));
  }
  if (!is_floating(dtype)) return Refusal::because("softmax is not defined on %s", dtype_name(dtype));
  return why_not_computed(device.context->physical->features, dtype);
}

Refusal Softmax::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const RowsSpace space(desc, mask_of(desc));
  const int64_t block = block_for(device, space, 2);
  const auto blocks =
      static_cast<int64_t>(divide_up(static_cast<uint64_t>(space.length()), block << lane_bits_for(space)));
  const bool kept = blocks * block <= kept_per_lane;
  const auto dtype = static_cast<uint32_t>(desc.operands[1].dtype);
  const Constants constants = {row_threads,
                               32,
                               desc.attributes.softmax.log != 0 ? 1U : 0U,
                               dtype,
                               0,
                               0,
                               kept ? 1U : 0U,
                               0,
                               static_cast<uint32_t>(block),
                               static_cast<uint32_t>(dtype_size(desc.operands[1].dtype))};
  std::shared_ptr<Pipeline> pipeline;
  const std::string module = module_name("softmax", "f32", device.context->physical->features);
  if (Refusal refusal = compile(device, module, constants, &pipeline)) return refusal;
  *out = make_primitive<RowPrimitive>(device, space, std::move(pipeline));
  return {};
}

}  // namespace tenon::provider::vulkan
