#include "sample_provider.h"

#include <array>

namespace tenon::loader {
namespace {

constexpr int sample_count = 4;

std::array<Sample, sample_count>& samples() {
  static std::array<Sample, sample_count> all;
  return all;
}

Sample& of(ep_plugin* plugin) { return *reinterpret_cast<Sample*>(plugin); }

void shut_down(ep_plugin* plugin) { ++of(plugin).shutdowns; }

ep_status device_count(ep_plugin* plugin, uint32_t* out_count, ep_error**) {
  ++of(plugin).counts;
  *out_count = static_cast<uint32_t>(of(plugin).devices.size());
  return EP_STATUS_OK;
}

ep_status device_info(ep_plugin* plugin, uint32_t index, ep_device_info* out, ep_error**) {
  const SampleDevice& device = of(plugin).devices.at(index);
  out->name = borrowed(device.name);
  out->unusable_reason = borrowed(device.unusable_reason);
  out->remedy = borrowed(device.remedy);
  out->device_class = device.device_class;
  out->flags = EP_DEVICE_FLAG_SYNCHRONOUS;
  for (uint8_t& byte : out->uuid) byte = device.uuid;
  for (int64_t& part : out->pci) part = device.pci_bus < 0 ? -1 : 0;
  out->pci[1] = device.pci_bus;
  out->pool_count = 1;
  out->pools[0].minimum_alignment = 64;
  if (of(plugin).change_info) of(plugin).change_info(out);
  return EP_STATUS_OK;
}

// The loader never calls these functions, but they must exist.
ep_status answer_internal() { return EP_STATUS_INTERNAL; }

ep_status device_open(ep_plugin* plugin, uint32_t, ep_device** out, ep_device_ops* ops, ep_error** error) {
  Sample& self = of(plugin);
  ++self.opens;
  if (self.on_open) {
    const ep_status status = self.on_open(self.host, error);
    if (status != EP_STATUS_OK) return status;
  }
  ops->device_close = [](ep_device* device) { ++of(reinterpret_cast<ep_plugin*>(device)).closes; };
  ops->memory_allocate = [](ep_device*, uint32_t, uint64_t, ep_memory**, ep_error**) { return answer_internal(); };
  ops->memory_free = [](ep_device*, ep_memory*) {};
  ops->stream_create = [](ep_device*, const ep_stream_desc*, ep_stream**, ep_error**) { return answer_internal(); };
  ops->stream_destroy = [](ep_device*, ep_stream*) {};
  ops->stream_synchronize = [](ep_stream*, ep_error**) { return answer_internal(); };
  ops->copy = [](ep_stream*, ep_buffer, ep_buffer, uint64_t, ep_error**) { return answer_internal(); };
  ops->upload = [](ep_stream*, ep_buffer, const void*, uint64_t, ep_error**) { return answer_internal(); };
  ops->download = [](ep_stream*, void*, ep_buffer, uint64_t, ep_error**) { return answer_internal(); };
  ops->primitive_support = [](ep_device*, const ep_primitive_desc*, ep_support_info*, ep_error**) {
    return answer_internal();
  };
  if (self.change_device_ops) self.change_device_ops(ops);
  *out = reinterpret_cast<ep_device*>(plugin);
  return EP_STATUS_OK;
}

template <int number>
ep_status query(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  Sample& self = samples()[number];
  ++self.queries;
  self.host = host;
  if (self.on_query) {
    const ep_status status = self.on_query(host, error);
    if (status != EP_STATUS_OK) return status;
  }
  out_ops->abi_major = EP_ABI_MAJOR;
  out_ops->abi_minor = EP_ABI_MINOR;
  out_ops->plugin = reinterpret_cast<ep_plugin*>(&self);
  out_ops->shutdown = shut_down;
  out_ops->device_count = device_count;
  out_ops->device_info = device_info;
  out_ops->device_open = device_open;
  if (self.change_plugin_ops) self.change_plugin_ops(out_ops);
  return EP_STATUS_OK;
}

}  // namespace

Sample& sample(int number) { return samples().at(static_cast<size_t>(number)); }

ep_plugin_query_fn sample_query(int number) {
  constexpr std::array<ep_plugin_query_fn, sample_count> queries = {query<0>, query<1>, query<2>, query<3>};
  return queries.at(static_cast<size_t>(number));
}

void reset_samples() {
  for (Sample& one : samples()) one = Sample{};
}

ep_string borrowed(const std::string& text) { return {text.data(), text.size()}; }

}  // namespace tenon::loader
