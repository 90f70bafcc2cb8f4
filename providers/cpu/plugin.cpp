#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "providers/cpu/device.h"
#include "providers/cpu/modules/modules.h"
#include "providers/cpu/onednn/version.h"
#include "sdk/provider/plugin.h"

EP_PLUGIN_NOTE("cpu", "0.1.0", 0)

namespace tenon::provider::cpu {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.compare(0, 10, "model name") != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

int32_t thread_limit(const ep_host* host) { return std::max(host->thread_limit(host), 1); }

// Reads the setting `simd`. Default: the best level of this processor.
ep_status read_simd_level(const ep_host* host, SimdLevel* out_level, ep_error** error) {
  const SimdLevel best = best_simd_level(), least = least_simd_level();
  if (best < least) {
    return fail_with_remedy(host, error, EP_STATUS_UNSUPPORTED, "Build it with -DTENON_CPU_TARGETS=all.",
                            "This build of provider cpu needs a processor with '%s'; this one has up to '%s'.",
                            simd_level_name(least).data(), simd_level_name(best).data());
  }
  ep_string text{};
  if (host->config_get(host, to_ep_string("simd"), &text) != EP_STATUS_OK) {
    *out_level = best;
    return EP_STATUS_OK;
  }
  const std::optional<SimdLevel> level = simd_level_from_name(to_view(text));
  if (!level || *level > best) {
    return fail_with_remedy(host, error, EP_STATUS_INVALID_ARGUMENT,
                            "Set simd to baseline, avx2 or avx3, or leave it out.",
                            "The setting simd of provider cpu is '%.*s'; this processor has up to '%s'.",
                            static_cast<int>(text.size), text.data, simd_level_name(best).data());
  }
  if (*level < least) {
    return fail_with_remedy(host, error, EP_STATUS_INVALID_ARGUMENT, "Build provider cpu with -DTENON_CPU_TARGETS=all.",
                            "The setting simd of provider cpu is '%.*s'; this build has nothing below '%s'.",
                            static_cast<int>(text.size), text.data, simd_level_name(least).data());
  }
  *out_level = *level;
  return EP_STATUS_OK;
}

ep_status device_count(ep_plugin*, uint32_t* out_count, ep_error**) {
  *out_count = 1;
  return EP_STATUS_OK;
}

// Reads the setting, and limits oneDNN to it. This comes first: oneDNN takes no limit after it was asked for its
// instructions.
ep_status choose_simd_level(const ep_host* host, SimdLevel* out, ep_error** error) {
  if (const ep_status status = read_simd_level(host, out, error); status != EP_STATUS_OK) return status;
  if (*out != best_simd_level()) limit_instructions(*out);
  return EP_STATUS_OK;
}

ep_status device_info(ep_plugin* plugin, uint32_t index, ep_device_info* out_info, ep_error** error) {
  if (const ep_status status = check_index(plugin->host, "cpu", 1, index, error); status != EP_STATUS_OK) return status;
  std::call_once(plugin->described, [plugin] {
    plugin->name = processor_name();
    plugin->fingerprint =
        fmt::format("{}, {}, oneDNN {}", plugin->name, simd_level_name(best_simd_level()).data(), onednn_version());
  });
  ep_device_info info{};
  info.name = to_ep_string(plugin->name);
  info.fingerprint = to_ep_string(plugin->fingerprint);
  info.device_class = EP_DEVICE_CLASS_CPU;
  info.flags = EP_DEVICE_FLAG_SYNCHRONOUS;
  info.dtypes = every_dtype;
  SimdLevel level{};
  choose_simd_level(plugin->host, &level, nullptr);  // device_open reports a wrong setting
  if (has_bf16_products()) info.flushed_dtypes = UINT64_C(1) << EP_DTYPE_bf16;
  info.native_memory = EP_HANDLE_HOST_POINTER;
  for (int64_t& part : info.pci) part = -1;
  info.threads = static_cast<uint32_t>(thread_limit(plugin->host));
  info.pool_count = 1;
  info.pools[0].flags = EP_POOL_FLAG_HOST_VISIBLE | EP_POOL_FLAG_COHERENT | EP_POOL_FLAG_HOST_CACHED;
  info.pools[0].minimum_alignment = 256;
  info.pools[0].preferred_block = 2 * 1024 * 1024;
  fill(out_info, info);
  return EP_STATUS_OK;
}

ep_status device_open(ep_plugin* plugin, uint32_t index, ep_device** out_device, ep_device_ops* out_ops,
                      ep_error** error) {
  const ep_host* host = plugin->host;
  if (const ep_status status = check_index(host, "cpu", 1, index, error); status != EP_STATUS_OK) return status;
  SimdLevel level{};
  if (const ep_status status = choose_simd_level(host, &level, error); status != EP_STATUS_OK) return status;
  switch_off_primitive_cache();
  *out_device = make<OpenDevice>(host, host, level, thread_limit(host));
  fill(out_ops, device_ops());
  return EP_STATUS_OK;
}

void fill_plugin(ep_plugin_ops* ops) {
  ops->device_count = entry<device_count>;
  ops->device_info = entry<device_info>;
  ops->device_open = entry<device_open>;
}

}  // namespace
}  // namespace tenon::provider::cpu

ep_status ep_plugin_query_v0(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error) {
  return tenon::provider::answer_query(host, out_ops, error, tenon::provider::cpu::fill_plugin);
}
