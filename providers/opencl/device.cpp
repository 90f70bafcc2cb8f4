#include "providers/opencl/device.h"

namespace tenon::provider::opencl {
namespace {

// The host has destroyed everything made from the device.
void device_close(ep_device* device) noexcept { destroy(device); }

void device_trim(ep_device* device) noexcept { device->programs->trim(); }

}  // namespace

ep_status open_device(ep_plugin* plugin, const PhysicalDevice& physical, const ep_adopt_desc* adopt, ep_device* device,
                      ep_error** error) {
  auto context = std::make_shared<Context>(plugin->host, plugin->api, physical);
  const ep_status status = adopt == nullptr ? context->create(error) : context->share(*adopt, error);
  if (status != EP_STATUS_OK) return status;
  device->programs = std::make_unique<Programs>(context, plugin->options.build);
  device->compiler = std::make_unique<OpenclCompiler>(plugin->host, physical, plugin->options.library);
  device->context = std::move(context);
  return EP_STATUS_OK;
}

ep_device_ops device_ops() {
  ep_device_ops ops{};
  ops.device_close = device_close;
  ops.device_trim = device_trim;
  fill_memory(&ops);
  fill_stream(&ops);
  fill_event(&ops);
  fill_primitive(&ops);
  fill_interop(&ops);
  fill_modules(&ops);
  return ops;
}

}  // namespace tenon::provider::opencl
