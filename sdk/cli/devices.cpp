#include <cstdio>
#include <nlohmann/json.hpp>

#include "loader/loader.h"
#include "sdk/cli/commands.h"
#include "sdk/cli/device_table.h"
#include "sdk/cli/table.h"

namespace tenon::cli {

int list_devices(const ReportOptions& options) {
  const std::vector<loader::DeviceRecord> devices = loader::list_devices();
  const Result<std::string> default_device = loader::resolve_device("");
  const std::string chosen = default_device.ok() ? default_device.value() : std::string();
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const loader::DeviceRecord& device : devices) list.push_back(device_json(device, chosen));
    std::printf("%s\n", nlohmann::json{{"devices", list}}.dump(2).c_str());
    return 0;
  }
  if (devices.empty()) {
    std::printf("There is no device. `tenon doctor` says which plug-ins were looked at and why each was refused.\n");
    return 1;
  }
  print_table(device_rows(devices, chosen));
  return 0;
}

}  // namespace tenon::cli
