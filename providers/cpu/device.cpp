#include "providers/cpu/device.h"

namespace tenon::provider::cpu {
namespace {

void device_close(ep_device* device) noexcept { destroy(device); }

}  // namespace

ep_device_ops device_ops() {
  ep_device_ops ops{};
  ops.device_close = device_close;
  fill_memory(&ops);
  fill_stream(&ops);
  fill_primitive(&ops);
  return ops;
}

}  // namespace tenon::provider::cpu
