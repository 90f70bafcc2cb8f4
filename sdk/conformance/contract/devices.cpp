// Devices: their descriptions, and indices without a device.
#include <string_view>

#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"

namespace tenon::conformance {
namespace {

std::string_view view(ep_string text) { return text.data == nullptr ? "" : std::string_view(text.data, text.size); }

std::string describe(const ep_device_info& info) {
  return fmt::format("{}; {}; {}; class {}; flags {}; dtypes {}; pools {}; threads {}; pci {}:{}:{}", view(info.name),
                     view(info.fingerprint), view(info.unusable_reason), info.device_class, info.flags, info.dtypes,
                     info.pool_count, info.threads, info.pci[0], info.pci[1], info.pci[2]);
}

}  // namespace

Status devices_described_alike(Subject& subject) {
  ep_plugin_ops& plugin = subject.plugin;
  uint32_t count = 0, again = 0;
  TENON_RETURN_IF_ERROR(subject.call("device_count", plugin.device_count, plugin.plugin, &count));
  for (uint32_t index = 0; index < count; ++index) {
    auto first = with_header<ep_device_info>(EP_STRUCT_DEVICE_INFO);
    auto second = with_header<ep_device_info>(EP_STRUCT_DEVICE_INFO);
    TENON_RETURN_IF_ERROR(subject.call("device_info", plugin.device_info, plugin.plugin, index, &first));
    const std::string before = describe(first);
    TENON_RETURN_IF_ERROR(subject.call("device_info", plugin.device_info, plugin.plugin, index, &second));
    if (describe(first) != before) return broken("D03", "the strings of device {} changed: {}", index, before);
    if (describe(second) != before) {
      return broken("D03", "device {} described itself in two ways: {} | {}", index, before, describe(second));
    }
    if (view(first.name).empty()) return broken("D03", "device {} has no name", index);
  }
  TENON_RETURN_IF_ERROR(subject.call("device_count", plugin.device_count, plugin.plugin, &again));
  if (again != count) return broken("D03", "device_count answered {}, then {}", count, again);
  return {};
}

Status devices_unknown_index(Subject& subject) {
  ep_plugin_ops& plugin = subject.plugin;
  uint32_t count = 0;
  TENON_RETURN_IF_ERROR(subject.call("device_count", plugin.device_count, plugin.plugin, &count));
  for (uint32_t index : {count, count + 7, ~uint32_t{0}}) {
    Poisoned<ep_device_info> info("out_info");
    const auto describe_it = [&](ep_error** error) {
      return plugin.device_info(plugin.plugin, index, &info.value, error);
    };
    TENON_RETURN_IF_ERROR(refuses(subject, "device_info", {Code::not_found}, describe_it, info));
    Poisoned<ep_device*> device("out_device");
    Poisoned<ep_device_ops> ops("out_ops");
    const auto open_it = [&](ep_error** error) {
      return plugin.device_open(plugin.plugin, index, &device.value, &ops.value, error);
    };
    TENON_RETURN_IF_ERROR(refuses(subject, "device_open", {Code::not_found}, open_it, device, ops));
  }
  return {};
}

}  // namespace tenon::conformance
