#include <cstdio>
#include <nlohmann/json.hpp>

#include "loader/loader.h"
#include "loader/settings/settings.h"
#include "sdk/cli/commands.h"
#include "sdk/cli/device_table.h"
#include "sdk/cli/table.h"

namespace tenon::cli {
namespace {

void print_error(const std::string& message) {
  std::printf("error: %s `tenon doctor` says more.\n", message.substr(0, message.find('\n')).c_str());
}

// What is wrong with the settings: the loader's, and those that a provider refused to start with.
void print_invalid_settings() {
  if (const Status& status = loader::settings().status; !status.ok()) print_error(status.message());
  for (const loader::Candidate& candidate : loader::explain()) {
    if (candidate.code == Code::invalid_argument) print_error(candidate.sentence);
  }
}

}  // namespace

int list_devices(const ReportOptions& options) {
  const std::vector<loader::DeviceRecord> devices = loader::list_devices();
  const Result<std::string> default_device = loader::resolve_device("");
  const std::string chosen = default_device.ok() ? default_device.value() : std::string();
  const std::string& invalid = loader::settings().status.message();
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const loader::DeviceRecord& device : devices) list.push_back(device_json(device, chosen));
    std::printf("%s\n", nlohmann::json{{"devices", list}, {"settings_error", invalid}}.dump(2).c_str());
    return 0;
  }
  if (devices.empty()) {
    std::printf("There is no device. `tenon doctor` says which plug-ins were looked at and why each was refused.\n");
    print_invalid_settings();
    return 1;
  }
  print_table(device_rows(devices, chosen));
  print_invalid_settings();
  return 0;
}

}  // namespace tenon::cli
