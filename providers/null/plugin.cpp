#include "sdk/provider/plugin.h"
#include "providers/null/device.h"

EP_PLUGIN_NOTE("null", "0.1.0", EP_NOTE_FLAG_UNLOADABLE)

namespace tenon::provider::null {
namespace {

ep_status device_count(ep_plugin*, uint32_t* out_count, ep_error**) {
  *out_count = 1;
  return EP_STATUS_OK;
}

ep_status device_info(ep_plugin* plugin, uint32_t index, ep_device_info* out_info, ep_error** error) {
  if (const ep_status status = check_index(plugin->host, "null", 1, index, error); status != EP_STATUS_OK)
    return status;
  ep_device_info info{};
  info.name = to_ep_string("Null device (computes nothing)");
  info.fingerprint = to_ep_string("null");
  info.device_class = EP_DEVICE_CLASS_SOFTWARE;
  info.dtypes = every_dtype;
  for (int64_t& part : info.pci) part = -1;
  info.pool_count = 1;
  info.pools[0].flags = EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT | EP_POOL_FLAG_HOST_CACHED;
  info.pools[0].minimum_alignment = alignment;
  fill(out_info, info);
  return EP_STATUS_OK;
}

ep_status device_open(ep_plugin* plugin, uint32_t index, ep_device** out_device, ep_device_ops* out_ops,
                      ep_error** error) {
  if (const ep_status status = check_index(plugin->host, "null", 1, index, error); status != EP_STATUS_OK)
    return status;
  *out_device = make<ep_device>(plugin->host);
  fill(out_ops, device_ops());
  return EP_STATUS_OK;
}

void fill_plugin(ep_plugin_ops* ops) {
  ops->device_count = entry<device_count>;
  ops->device_info = entry<device_info>;
  ops->device_open = entry<device_open>;
}

}  // namespace
}  // namespace tenon::provider::null

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return tenon::provider::answer_query(host, out_ops, error, tenon::provider::null::fill_plugin);
}
