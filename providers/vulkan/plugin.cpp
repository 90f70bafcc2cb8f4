#include "sdk/provider/plugin.h"
#include "providers/vulkan/device.h"

EP_PLUGIN_NOTE("vulkan", "0.1.0", EP_NOTE_FLAG_PROBE_IN_CHILD)

namespace tenon::provider::vulkan {
namespace {

// Looks for devices until it succeeds once. After a failure the next call tries again.
ep_status discover(ep_plugin* plugin, ep_error** error) {
  std::lock_guard lock(plugin->mutex);
  if (plugin->discovered) return EP_STATUS_OK;
  ep_status status = read_options(plugin->host, &plugin->options, error);
  if (status == EP_STATUS_OK) status = plugin->instance.open(plugin->host, plugin->options, error);
  plugin->discovered = status == EP_STATUS_OK;
  return status;
}

ep_status find_device(ep_plugin* plugin, uint32_t index, const PhysicalDevice** out_device, ep_error** error) {
  if (const ep_status status = discover(plugin, error); status != EP_STATUS_OK) return status;
  const auto& devices = plugin->instance.devices();
  const ep_status status = check_index(plugin->host, "vulkan", devices.size(), index, error);
  if (status == EP_STATUS_OK) *out_device = &devices[index];
  return status;
}

ep_status device_count(ep_plugin* plugin, uint32_t* out_count, ep_error** error) {
  if (const ep_status status = discover(plugin, error); status != EP_STATUS_OK) return status;
  *out_count = static_cast<uint32_t>(plugin->instance.devices().size());
  return EP_STATUS_OK;
}

ep_status device_info(ep_plugin* plugin, uint32_t index, ep_device_info* out_info, ep_error** error) {
  const PhysicalDevice* physical = nullptr;
  if (const ep_status status = find_device(plugin, index, &physical, error); status != EP_STATUS_OK) return status;
  ep_device_info info{};
  fill_info(*physical, &info);
  fill(out_info, info);
  return EP_STATUS_OK;
}

ep_status device_adopt(ep_plugin* plugin, uint32_t index, const ep_adopt_desc* adopt, ep_device** out_device,
                       ep_device_ops* out_ops, ep_error** error) {
  const PhysicalDevice* physical = nullptr;
  if (const ep_status status = find_device(plugin, index, &physical, error); status != EP_STATUS_OK) return status;
  if (!physical->unusable.empty()) {
    return fail_text(plugin->host, error, EP_STATUS_NOT_FOUND, physical->unusable, physical->remedy);
  }
  ep_device* device = make<ep_device>(plugin->host);
  if (const ep_status status = open_device(plugin, *physical, adopt, device, error); status != EP_STATUS_OK) {
    destroy(device);
    return status;
  }
  *out_device = device;
  ep_device_ops ops = device_ops();
  if (physical->facts.timestamp_mask == 0) ops.event_elapsed = nullptr;
  fill(out_ops, ops);
  return EP_STATUS_OK;
}

ep_status device_open(ep_plugin* plugin, uint32_t index, ep_device** out_device, ep_device_ops* out_ops,
                      ep_error** error) {
  return device_adopt(plugin, index, nullptr, out_device, out_ops, error);
}

void fill_plugin(ep_plugin_ops* ops) {
  ops->device_count = entry<device_count>;
  ops->device_info = entry<device_info>;
  ops->device_open = entry<device_open>;
  ops->device_adopt = entry<device_adopt>;
}

}  // namespace
}  // namespace tenon::provider::vulkan

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return tenon::provider::answer_query(host, out_ops, error, tenon::provider::vulkan::fill_plugin);
}
