#include "sdk/provider/plugin.h"
#include "providers/opencl/device.h"
#include "providers/opencl/driver/result.h"

EP_PLUGIN_NOTE("opencl", "0.1.0", EP_NOTE_FLAG_PROBE_IN_CHILD)

namespace tenon::provider::opencl {
namespace {

constexpr const char* install_remedy =
    "Install the ICD loader and a driver (Debian: ocl-icd-libopencl1, and pocl-opencl-icd for processors); if "
    "OCL_ICD_VENDORS or OCL_ICD_FILENAMES is set, see that it names a driver.";

ep_status look_for_devices(ep_plugin* plugin, ep_error** error) {
  const cl_int result = find_devices(plugin->api, &plugin->devices);
  if (result == no_platform) {
    return fail_with_remedy(plugin->host, error, EP_STATUS_NOT_FOUND, install_remedy,
                            "The ICD loader %s found no OpenCL driver.", plugin->options.library.c_str());
  }
  if (result == CL_SUCCESS) return EP_STATUS_OK;
  return fail_with_remedy(plugin->host, error, status_of(result), install_remedy, "clGetPlatformIDs answered %s (%d).",
                          result_name(result), result);
}

// Looks for devices until it succeeds once. After a failure the next call tries again.
ep_status discover(ep_plugin* plugin, ep_error** error) {
  std::lock_guard lock(plugin->mutex);
  if (plugin->discovered) return EP_STATUS_OK;
  plugin->options = read_options(plugin->host);
  if (const std::string reason = plugin->api.open(plugin->options.library); !reason.empty()) {
    return fail_with_remedy(plugin->host, error, EP_STATUS_NOT_FOUND, install_remedy,
                            "The ICD loader of OpenCL cannot be opened: %s.", reason.c_str());
  }
  plugin->devices.clear();
  const ep_status status = look_for_devices(plugin, error);
  plugin->discovered = status == EP_STATUS_OK;
  return status;
}

ep_status find_device(ep_plugin* plugin, uint32_t index, const PhysicalDevice** out_device, ep_error** error) {
  if (const ep_status status = discover(plugin, error); status != EP_STATUS_OK) return status;
  const ep_status status = check_index(plugin->host, "opencl", plugin->devices.size(), index, error);
  if (status == EP_STATUS_OK) *out_device = &plugin->devices[index];
  return status;
}

ep_status device_count(ep_plugin* plugin, uint32_t* out_count, ep_error** error) {
  if (const ep_status status = discover(plugin, error); status != EP_STATUS_OK) return status;
  *out_count = static_cast<uint32_t>(plugin->devices.size());
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
  fill(out_ops, device_ops());
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
}  // namespace tenon::provider::opencl

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return tenon::provider::answer_query(host, out_ops, error, tenon::provider::opencl::fill_plugin);
}
