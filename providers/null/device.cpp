#include "providers/null/device.h"

namespace tenon::provider::null {
namespace {

void device_close(ep_device* device) noexcept { destroy(device); }

}  // namespace

ep_device_ops device_ops() {
  ep_device_ops ops{};
  ops.device_close = device_close;
  fill_memory(&ops);
  fill_stream(&ops);
  fill_event(&ops);
  fill_primitive(&ops);
  return ops;
}

}  // namespace tenon::provider::null
