#include "loader/loader.h"

#include "ep_api/ep_names.h"
#include "loader/collectives/collectives.h"
#include "loader/explain/findings.h"
#include "loader/log/log.h"
#include "loader/registry/registry.h"
#include "loader/search/search.h"
#include "loader/select/spelling.h"
#include "loader/select/target.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

// The first call of settings() logs their warnings, which must not happen under the registry's lock.
std::unique_lock<std::mutex> locked(Registry& registry) {
  static_cast<void>(settings());
  return std::unique_lock(registry.mutex());
}

// The default device may differ from the one that the user expects if the provider of a better one was not loaded.
void warn_of_quarantined(Registry& registry) {
  for (const auto& entry : registry.entries()) {
    if (!entry->quarantined() || entry->is_told) continue;
    entry->is_told = true;
    log(LogTopic::load, LogLevel::warning, entry->report.sentence);
  }
}

}  // namespace

// If the user named no device and a defect of its provider keeps the best device from opening, the next device is
// tried. Any other failure of the best device is an error, since the next one would be a silent run on another device.
Result<OpenDevice*> open_device(std::string_view spelling) {
  Registry& registry = Registry::instance();
  const auto lock = locked(registry);
  const bool asked = !spelling.empty() || !settings().device.empty();
  while (true) {
    TENON_ASSIGN_OR_RETURN(const Target target, find_target(registry, spelling));
    Result<OpenDevice*> device = target.entry->plugin->open(target.index);
    registry.note_opening(*target.entry, device.ok());
    if (!asked) warn_of_quarantined(registry);
    if (device.ok() && log_enabled(LogTopic::load, LogLevel::debug)) {
      log(LogTopic::load, LogLevel::debug,
          fmt::format("opened {} ({}).", target.spelling(), device.value()->info.name));
    }
    if (device.ok() || asked || target.entry->plugin->devices()[target.index].info.usable()) return device;
    log(LogTopic::load, LogLevel::warning,
        fmt::format("passed over {}: {}", target.spelling(), device.status().message()));
  }
}

Result<OpenDevice*> adopt_device(std::string_view spelling, const ep_adopt_desc& desc) {
  Registry& registry = Registry::instance();
  const auto lock = locked(registry);
  TENON_ASSIGN_OR_RETURN(const Target target, find_target(registry, spelling));
  Result<OpenDevice*> device = target.entry->plugin->adopt(target.index, desc);
  registry.note_opening(*target.entry, device.ok());
  return device;
}

std::string handle_names(uint64_t mask) {
  std::vector<std::string_view> names;
  for (int32_t type = 0; type < 64; ++type) {
    if ((mask >> type & 1) != 0) names.emplace_back(ep_handle_name(type));
  }
  std::string text = names.empty() ? "none" : std::string(names.front());
  for (size_t i = 1; i < names.size(); ++i)
    text += fmt::format("{}{}", i + 1 == names.size() ? " and " : ", ", names[i]);
  return text;
}

Result<std::string> resolve_device(std::string_view spelling) {
  Registry& registry = Registry::instance();
  const auto lock = locked(registry);
  TENON_ASSIGN_OR_RETURN(const Target target, find_target(registry, spelling));
  return target.spelling();
}

std::vector<ListedDevice> list_devices() {
  Registry& registry = Registry::instance();
  const auto lock = locked(registry);
  if (!registry.is_shut_down()) registry.advance_all(Stage::usable);
  return registry.devices();
}

std::vector<Candidate> explain(Stage until) {
  Registry& registry = Registry::instance();
  const auto lock = locked(registry);
  if (!registry.is_shut_down()) registry.advance_all(until);
  std::vector<Candidate> reports;
  for (const auto& entry : registry.entries()) reports.push_back(entry->report);
  return reports;
}

std::vector<Finding> findings() {
  const std::vector<ListedDevice> devices = list_devices();
  return findings_of(devices, explain());
}

std::vector<SearchedFolder> searched_folders() {
  Registry& registry = Registry::instance();
  const auto lock = locked(registry);
  return registry.folders();
}

void register_provider(std::string name, ep_plugin_query_fn query) {
  Registry& registry = Registry::instance();
  const std::lock_guard lock(registry.mutex());
  registry.add(std::move(name), query);
}

void close_device(OpenDevice* device) {
  Registry& registry = Registry::instance();
  const std::lock_guard lock(registry.mutex());
  for (const auto& entry : registry.entries()) {
    if (entry->plugin && entry->plugin->close(device)) return;
  }
}

Status retire(std::string_view provider) {
  Registry& registry = Registry::instance();
  const auto lock = locked(registry);
  return registry.retire(provider);
}

void shutdown_all() {
  shut_down_collectives(false);
  Registry& registry = Registry::instance();
  const std::lock_guard lock(registry.mutex());
  registry.shut_down();
}

HostMemory provider_host_memory(std::string_view provider) {
  Registry& registry = Registry::instance();
  const std::lock_guard lock(registry.mutex());
  for (const auto& entry : registry.entries()) {
    if (entry->plugin && entry->report.provider == provider) return entry->plugin->host().memory();
  }
  return {};
}

int64_t reported_device_memory(const OpenDevice& device) {
  Registry& registry = Registry::instance();
  const std::lock_guard lock(registry.mutex());
  for (const auto& entry : registry.entries()) {
    if (entry->plugin && entry->report.provider == device.provider) {
      return entry->plugin->host().device_memory(device.handle);
    }
  }
  return 0;
}

void reset_for_tests() {
  shut_down_collectives(true);
  Registry& registry = Registry::instance();
  {
    const std::lock_guard lock(registry.mutex());
    registry.reset();
  }
  forget_plugin_folders();
  reset_settings_for_tests();
}

}  // namespace tenon::loader
