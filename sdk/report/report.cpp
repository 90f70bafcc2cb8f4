#include "sdk/report/report.h"

#include <algorithm>

#include "core/interpreter/launch_terms.h"
#include "core/tensor/version.h"
#include "loader/collectives/collectives.h"
#include "loader/settings/settings.h"
#include "primitives/text/format.h"

namespace tenon::report {
namespace {

using nlohmann::json;

std::string uuid_text(const loader::DeviceInfo& info) {
  std::string text;
  for (uint8_t byte : info.uuid) text += fmt::format("{:02x}", byte);
  return info.uuid == decltype(info.uuid){} ? std::string() : text;
}

std::string pci_text(const loader::DeviceInfo& info) {
  if (info.pci[0] < 0) return {};
  const auto part = [&](size_t index) { return static_cast<unsigned>(info.pci[index]); };
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", part(0), part(1), part(2), part(3));
}

// The names of the dtypes whose bit 1 << dtype is set.
json dtype_names(uint64_t dtypes) {
  json names = json::array();
#define EP_DTYPE(name, id, bits, type_class) \
  if ((dtypes >> id & 1) != 0) names.push_back(#name);
#include "ep_api/dtypes.def"
#undef EP_DTYPE
  return names;
}

json candidate_json(const loader::Candidate& candidate) {
  json devices = json::array();
  for (const loader::ListedDevice& device : candidate.devices) devices.push_back(device.spelling);
  return {{"provider", candidate.provider},    {"path", candidate.path},
          {"source", candidate.source},        {"version", candidate.version},
          {"toolchain", candidate.toolchain},  {"stage", loader::stage_name(candidate.stage)},
          {"code", code_name(candidate.code)}, {"sentence", candidate.sentence},
          {"remedy", candidate.remedy},        {"devices", devices}};
}

}  // namespace

const char* class_name(int32_t device_class) {
  switch (device_class) {
    case EP_DEVICE_CLASS_DISCRETE: return "discrete";
    case EP_DEVICE_CLASS_INTEGRATED: return "integrated";
    case EP_DEVICE_CLASS_CPU: return "cpu";
    case EP_DEVICE_CLASS_SOFTWARE: return "software";
    case EP_DEVICE_CLASS_ACCELERATOR: return "accelerator";
    default: return "other";
  }
}

uint64_t memory_bytes(const loader::DeviceInfo& info) {
  uint64_t bytes = 0;
  for (const loader::MemoryPool& pool : info.pools) bytes = std::max(bytes, pool.size);
  return bytes;
}

json device_json(const loader::ListedDevice& device, const std::string& chosen) {
  const Accuracy& accuracy = device.info.accuracy;
  return {{"device", device.spelling},
          {"provider", device.provider},
          {"name", device.info.name},
          {"class", class_name(device.info.device_class)},
          {"usable", device.info.usable()},
          {"default", device.spelling == chosen},
          {"reason", device.info.unusable_reason},
          {"remedy", device.info.remedy},
          {"same_as", device.same_as},
          {"uuid", uuid_text(device.info)},
          {"pci", pci_text(device.info)},
          {"synchronous", device.info.synchronous()},
          {"threads", device.info.threads},
          {"fingerprint", device.info.fingerprint},
          {"dtypes", dtype_names(device.info.dtypes)},
          {"portable", dtype_names(accuracy.portable)},
          {"relaxed", dtype_names(accuracy.relaxed)},
          {"flushes_denormals", dtype_names(accuracy.flushed)}};
}

json executions_json(const std::vector<onnx::NodeExecution>& executions) {
  json list = json::array();
  for (const onnx::NodeExecution& p : executions) {
    list.push_back({{"node", p.node},
                    {"name", p.node_name},
                    {"op_type", p.op_type},
                    {"op", p.op},
                    {"device", p.device},
                    {"provider", p.provider},
                    {"implementation", p.implementation},
                    {"plain", is_plain(p.implementation)},
                    {"rung", p.rung},
                    {"reason", p.reason},
                    {"bytes_copied", p.bytes_copied},
                    {"tier", p.tier}});
  }
  return list;
}

json doctor_json() {
  const loader::Settings& settings = loader::settings();
  json folders = json::array(), candidates = json::array(), carriers = json::array(), rows = json::array();
  for (const loader::Candidate& candidate : loader::explain()) {
    if (candidate.kind != EP_PLUGIN_KIND_COLLECTIVES) candidates.push_back(candidate_json(candidate));
  }
  for (const loader::Candidate& candidate : loader::explain_collectives()) {
    carriers.push_back(candidate_json(candidate));
  }
  for (const loader::SearchedFolder& folder : loader::searched_folders()) {
    folders.push_back({{"path", folder.path},
                       {"source", folder.source},
                       {"candidates", folder.candidates},
                       {"why_not", folder.status.message()}});
  }
  for (const loader::SettingRow& row : loader::setting_rows()) {
    const auto origin = settings.origins.find(row.key);
    if (origin == settings.origins.end()) continue;
    rows.push_back({{"key", row.key},
                    {"variable", row.variable},
                    {"value", origin->second.text},
                    {"level", loader::level_name(origin->second.level)},
                    {"where", origin->second.where}});
  }
  const Result<std::string> resolved = loader::resolve_device("");
  const std::string chosen = resolved.ok() ? resolved.value() : std::string();
  json devices = json::array(), findings = json::array();
  for (const loader::ListedDevice& device : loader::list_devices()) devices.push_back(device_json(device, chosen));
  for (const loader::Finding& finding : loader::findings())
    findings.push_back({{"sentence", finding.sentence}, {"remedy", finding.remedy}});
  return {{"version", version()},
          {"devices", devices},
          {"findings", findings},
          {"threads", loader::thread_limit()},
          {"folders", folders},
          {"candidates", candidates},
          {"collectives", carriers},
          {"settings", rows},
          {"settings_error", settings.status.message()},
          {"warnings", settings.warnings},
          {"config_files", settings.config_files},
          {"privileged", settings.privileged},
          {"default_device", chosen},
          {"default_device_by", loader::describe_origin("device", settings.origins.at("device"))},
          {"default_device_error", resolved.status().message()},
          {"default_device_remedy", resolved.status().remedy()}};
}

}  // namespace tenon::report
