#include <cstdio>
#include <nlohmann/json.hpp>

#include "loader/loader.h"
#include "sdk/cli/commands.h"

namespace tenon::cli {
namespace {

const char* class_name(int32_t device_class) {
  switch (device_class) {
    case EP_DEVICE_CLASS_DISCRETE: return "discrete";
    case EP_DEVICE_CLASS_INTEGRATED: return "integrated";
    case EP_DEVICE_CLASS_CPU: return "cpu";
    case EP_DEVICE_CLASS_SOFTWARE: return "software";
    default: return "other";
  }
}

std::string memory_text(const loader::DeviceInfo& info) {
  uint64_t bytes = 0;
  for (const loader::MemoryPool& pool : info.pools) bytes = std::max(bytes, pool.size);
  if (bytes == 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

nlohmann::json to_json(const loader::DeviceRecord& device, bool is_default) {
  nlohmann::json dtypes = nlohmann::json::array();
#define EP_DTYPE(name, id, bits, type_class) \
  if ((device.info.dtypes >> id & 1) != 0) dtypes.push_back(#name);
#include "ep_api/dtypes.def"
#undef EP_DTYPE
  return {{"device", device.spelling},
          {"provider", device.provider},
          {"name", device.info.name},
          {"class", class_name(device.info.device_class)},
          {"usable", device.info.usable()},
          {"default", is_default},
          {"reason", device.info.unusable_reason},
          {"remedy", device.info.remedy},
          {"same_as", device.same_as},
          {"synchronous", device.info.synchronous()},
          {"threads", device.info.threads},
          {"fingerprint", device.info.fingerprint},
          {"dtypes", dtypes}};
}

}  // namespace

int list_devices(const ReportOptions& options) {
  const std::vector<loader::DeviceRecord> devices = loader::list_devices();
  const Result<std::string> chosen = loader::resolve_device("");
  const auto is_default = [&](const loader::DeviceRecord& device) {
    return chosen.ok() && chosen.value() == device.spelling;
  };
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const loader::DeviceRecord& device : devices) list.push_back(to_json(device, is_default(device)));
    std::printf("%s\n", nlohmann::json{{"devices", list}}.dump(2).c_str());
    return 0;
  }
  if (devices.empty()) {
    std::printf("There is no device. `tenon doctor` says which plug-ins were looked at and why each was refused.\n");
    return 1;
  }
  std::vector<std::vector<std::string>> rows = {{"device", "class", "memory", "name", ""}};
  for (const loader::DeviceRecord& device : devices) {
    std::string note = is_default(device) ? "default" : "";
    if (!device.same_as.empty())
      note += (note.empty() ? "the same hardware as " : ", the same hardware as ") + device.same_as;
    if (!device.info.usable()) note = "not usable: " + device.info.unusable_reason;
    rows.push_back(
        {device.spelling, class_name(device.info.device_class), memory_text(device.info), device.info.name, note});
  }
  print_table(rows);
  return 0;
}

}  // namespace tenon::cli
