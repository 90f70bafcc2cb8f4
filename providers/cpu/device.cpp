#include "providers/cpu/device.h"

#include "providers/cpu/modules/modules.h"

namespace tenon::provider::cpu {
namespace {

void device_close(ep_device* device) noexcept { destroy(static_cast<OpenDevice*>(device)); }

}  // namespace

ep_device_ops device_ops() {
  ep_device_ops ops{};
  ops.device_close = device_close;
  fill_memory(&ops);
  fill_stream(&ops);
  fill_primitive(&ops);
  fill_modules(&ops);
  return ops;
}

}  // namespace tenon::provider::cpu
