#include "providers/null/device.h"

EP_PLUGIN_NOTE("null", "0.1.0", EP_NOTE_FLAG_UNLOADABLE)

namespace tenon::provider::null {
namespace {

constexpr uint64_t every_dtype = 0
#define EP_DTYPE(name, id, bits, type_class) | (UINT64_C(1) << (id))
#include "ep_api/dtypes.def"
#undef EP_DTYPE
    ;

void shutdown(ep_plugin* plugin) noexcept { destroy(plugin); }

ep_status device_count(ep_plugin*, uint32_t* out_count, ep_error**) {
  *out_count = 1;
  return EP_STATUS_OK;
}

ep_status device_info(ep_plugin* plugin, uint32_t index, ep_device_info* out_info, ep_error** error) {
  if (index != 0) return fail(plugin->host, error, EP_STATUS_NOT_FOUND, "null has one device; there is no %u.", index);
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
  if (index != 0) return fail(plugin->host, error, EP_STATUS_NOT_FOUND, "null has one device; there is no %u.", index);
  *out_device = make<ep_device>(plugin->host);
  fill(out_ops, device_ops());
  return EP_STATUS_OK;
}

ep_status query(const ep_host* host, ep_plugin_ops* out_ops) {
  ep_plugin_ops ops{};
  ops.abi_major = EP_ABI_MAJOR;
  ops.abi_minor = EP_ABI_MINOR;
  ops.plugin = make<ep_plugin>(host);
  ops.shutdown = shutdown;
  ops.device_count = entry<device_count>;
  ops.device_info = entry<device_info>;
  ops.device_open = entry<device_open>;
  fill(out_ops, ops);
  return EP_STATUS_OK;
}

}  // namespace
}  // namespace tenon::provider::null

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) try {
  const ep_status status = tenon::provider::negotiate(host, out_ops, error);
  return status == EP_STATUS_OK ? tenon::provider::null::query(host, out_ops) : status;
} catch (...) {
  return tenon::provider::caught(host, error);
}
