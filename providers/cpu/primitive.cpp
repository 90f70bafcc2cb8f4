#include "providers/cpu/primitive.h"

#include "providers/cpu/lists.h"

ep_status ep_primitive::workspace(const ep_shape*, uint64_t* out_bytes) const {
  *out_bytes = 0;
  return EP_STATUS_OK;
}

ep_status ep_primitive::pack(char*, const char*, ep_error** error) {
  return tenon::provider::fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "This primitive packs no operand.");
}

namespace tenon::provider::cpu {
namespace {

Refusal why_not(const Implementation& implementation, const ep_device& device, const ep_primitive_desc& desc,
                ep_support_info& info) {
  if (Refusal refusal = unknown_parts(desc)) return refusal;
  if (desc.baked_scalars != 0)
    return Refusal::because("baked scalars 0x%x; all are launch values here", desc.baked_scalars);
  info = {};
  info.implementation = to_ep_string(implementation.name);
  return implementation.why_not(device, desc, info);
}

ep_status primitive_support(ep_device* device, const ep_primitive_desc* desc, ep_support_info* out_info,
                            ep_error** error) {
  ep_support_info info{};
  const ep_status status =
      choose(device->host, "cpu", implementation_lists(), *desc, error,
             [&](const Implementation& candidate) { return why_not(candidate, *device, *desc, info); });
  if (status == EP_STATUS_OK) fill(out_info, info);
  return status;
}

ep_status primitive_create(ep_device* device, const ep_primitive_desc* desc, ep_primitive** out_primitive,
                           ep_primitive_info* out_info, ep_error** error) {
  ep_primitive* primitive = nullptr;
  ep_primitive_info info{};
  const ep_status status =
      choose(device->host, "cpu", implementation_lists(), *desc, error, [&](const Implementation& candidate) {
        ep_support_info terms{};
        if (Refusal refusal = why_not(candidate, *device, *desc, terms)) return refusal;
        info = {};
        info.implementation = terms.implementation;
        return candidate.make(*device, *desc, &primitive, info);
      });
  if (status != EP_STATUS_OK || primitive == nullptr) return status;
  if (info.workspace_bytes == 0 && !is_dynamic(*desc)) primitive->workspace(nullptr, &info.workspace_bytes);
  if (info.workspace_bytes == 0 && !primitive->has_workspace()) info.flags |= EP_PRIMITIVE_INFO_FLAG_NO_WORKSPACE;
  if (info.host_bytes < primitive->size) info.host_bytes = primitive->size;
  fill(out_info, info);
  *out_primitive = primitive;
  return EP_STATUS_OK;
}

void primitive_destroy(ep_device* device, ep_primitive* primitive) noexcept {
  if (primitive == nullptr) return;
  const uint64_t size = primitive->size;
  primitive->~ep_primitive();
  device->host->release(device->host, primitive, size);
}

ep_status primitive_workspace(ep_primitive* primitive, const ep_shape* shapes, uint32_t, uint64_t* out_bytes,
                              ep_error**) {
  return primitive->workspace(shapes, out_bytes);
}

ep_status primitive_launch(ep_primitive* primitive, ep_stream*, const ep_launch* launch, ep_fault* out_fault,
                           ep_error** error) {
  return primitive->launch(*launch, out_fault, error);
}

ep_status primitive_pack(ep_primitive* primitive, ep_stream*, ep_buffer dst, ep_buffer src, ep_error** error) {
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
