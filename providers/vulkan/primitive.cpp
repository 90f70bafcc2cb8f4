#include "providers/vulkan/primitive.h"

#include "providers/vulkan/lists.h"

namespace tenon::provider::vulkan {
namespace {

ep_status primitive_support(ep_device* device, const ep_primitive_desc* desc, ep_support_info* out_info,
                            ep_error** error) {
  return support(*device, "vulkan", implementation_lists(), *desc, out_info, error);
}

ep_status primitive_create(ep_device* device, const ep_primitive_desc* desc, ep_primitive** out_primitive,
                           ep_primitive_info* out_info, ep_error** error) {
  if (const ep_status status = device->context->check(error); status != EP_STATUS_OK) return status;
  return create(*device, "vulkan", implementation_lists(), *desc, out_primitive, out_info, error);
}

void primitive_destroy(ep_device*, ep_primitive* primitive) noexcept { destroy_primitive(primitive); }

ep_status primitive_workspace(ep_primitive* primitive, const ep_shape* shapes, uint32_t, uint64_t* out_bytes,
                              ep_error**) {
  *out_bytes = primitive->workspace(shapes);
  return EP_STATUS_OK;
}

ep_status primitive_launch(ep_primitive* primitive, ep_stream* stream, const ep_launch* launch, ep_fault*,
                           ep_error** error) {
  CommandStream::Call call(*stream->commands);
  return call.end(primitive->launch(*stream, *launch, error));
}

}  // namespace

Refusal compile(ep_device& device, const std::string& module, const Constants& constants,
                std::shared_ptr<Pipeline>* out_pipeline) {
  const Refusal why = device.pipelines->get(module, constants, out_pipeline);
  if (!why) return {};
  return Refusal::failure(why.status(), "the driver of %s cannot compile %s: %s",
                          device.context->physical->name.c_str(), module.c_str(), why.text());
}

void fill_primitive(ep_device_ops* ops) {
  ops->primitive_support = entry<primitive_support>;
  ops->primitive_create = entry<primitive_create>;
  ops->primitive_destroy = primitive_destroy;
  ops->primitive_workspace = entry<primitive_workspace>;
  ops->primitive_launch = entry<primitive_launch>;
}

}  // namespace tenon::provider::vulkan
