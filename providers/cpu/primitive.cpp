#include "providers/cpu/primitive.h"

#include "providers/cpu/lists.h"
#include "providers/cpu/threads/stop.h"

ep_status ep_primitive::pack(char*, const char*, ep_error** error) {
  return tenon::provider::fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "This primitive packs no operand.");
}

namespace tenon::provider::cpu {
namespace {

ep_status primitive_support(ep_device* device, const ep_primitive_desc* desc, ep_support_info* out_info,
                            ep_error** error) {
  return support(*device, "cpu", implementation_lists(), *desc, out_info, error);
}

ep_status primitive_create(ep_device* device, const ep_primitive_desc* desc, ep_primitive** out_primitive,
                           ep_primitive_info* out_info, ep_error** error) {
  begin_unstoppable();
  return create(*device, "cpu", implementation_lists(), *desc, out_primitive, out_info, error);
}

void primitive_destroy(ep_device*, ep_primitive* primitive) noexcept { destroy_primitive(primitive); }

ep_status primitive_workspace(ep_primitive* primitive, const ep_shape* shapes, uint32_t, uint64_t* out_bytes,
                              ep_error**) {
  *out_bytes = primitive->workspace(shapes);
  return EP_STATUS_OK;
}

ep_status primitive_launch(ep_primitive* primitive, ep_stream*, const ep_launch* launch, ep_fault* out_fault,
                           ep_error** error) {
  begin_stoppable(primitive->host);
  return primitive->launch(*launch, out_fault, error);
}

ep_status primitive_pack(ep_primitive* primitive, ep_stream*, ep_buffer dst, ep_buffer src, ep_error** error) {
  begin_stoppable(primitive->host);
  return primitive->pack(address_of(dst), address_of(src), error);
}

}  // namespace

void fill_primitive(ep_device_ops* ops) {
  ops->primitive_support = entry<primitive_support>;
  ops->primitive_create = entry<primitive_create>;
  ops->primitive_destroy = primitive_destroy;
  ops->primitive_workspace = entry<primitive_workspace>;
  ops->primitive_launch = entry<primitive_launch>;
  ops->primitive_pack = entry<primitive_pack>;
}

}  // namespace tenon::provider::cpu
