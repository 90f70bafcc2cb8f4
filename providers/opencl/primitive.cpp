#include "providers/opencl/primitive.h"

#include "providers/opencl/kernels/demand.h"
#include "providers/opencl/lists.h"

namespace tenon::provider::opencl {
namespace {

ep_status primitive_support(ep_device* device, const ep_primitive_desc* desc, ep_support_info* out_info,
                            ep_error** error) {
  const ep_status status = support(*device, "opencl", implementation_lists(), *desc, out_info, error);
  if (status == EP_STATUS_OK && keeps_demand(device->context->physical, *desc)) {
    out_info->flags |= EP_SUPPORT_FLAG_PRECISION;
  }
  return status;
}

ep_status primitive_create(ep_device* device, const ep_primitive_desc* desc, ep_primitive** out_primitive,
                           ep_primitive_info* out_info, ep_error** error) {
  if (const ep_status status = device->context->check(error); status != EP_STATUS_OK) return status;
  return create(*device, "opencl", implementation_lists(), *desc, out_primitive, out_info, error);
}

void primitive_destroy(ep_device*, ep_primitive* primitive) noexcept { destroy_primitive(primitive); }

ep_status primitive_workspace(ep_primitive* primitive, const ep_shape* shapes, uint32_t, uint64_t* out_bytes,
                              ep_error**) {
  *out_bytes = primitive->workspace(shapes);
  return EP_STATUS_OK;
}

ep_status primitive_launch(ep_primitive* primitive, ep_stream* stream, const ep_launch* launch, ep_fault*,
                           ep_error** error) {
  return primitive->launch(*stream, *launch, error);
}

}  // namespace

void fill_primitive(ep_device_ops* ops) {
  ops->primitive_support = entry<primitive_support>;
  ops->primitive_create = entry<primitive_create>;
  ops->primitive_destroy = primitive_destroy;
  ops->primitive_workspace = entry<primitive_workspace>;
  ops->primitive_launch = entry<primitive_launch>;
}

}  // namespace tenon::provider::opencl
