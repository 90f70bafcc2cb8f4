#include "providers/null/device.h"
#include "sdk/provider/descriptor.h"

namespace tenon::provider::null {
namespace {

ep_status primitive_support(ep_device* device, const ep_primitive_desc* desc, ep_support_info*, ep_error** error) {
  return fail(device->host, error, EP_STATUS_UNSUPPORTED, "null computes nothing, so it has no %s.",
              kind_name(desc->kind));
}

}  // namespace

void fill_primitive(ep_device_ops* ops) { ops->primitive_support = entry<primitive_support>; }

}  // namespace tenon::provider::null
