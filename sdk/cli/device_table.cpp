#include "sdk/cli/device_table.h"

#include <algorithm>
#include <cstdio>

#include "primitives/text/format.h"

namespace tenon::cli {
namespace {

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

std::string memory_text(const loader::DeviceInfo& info) {
  uint64_t bytes = 0;
  for (const loader::MemoryPool& pool : info.pools) bytes = std::max(bytes, pool.size);
  if (bytes == 0) return "-";
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

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

std::string note_of(const loader::ListedDevice& device, const std::string& chosen) {
  if (!device.info.usable()) return fmt::format("not usable: {}", device.info.unusable_reason);
  if (device.spelling == chosen) return "default";
  const int32_t one = device.info.device_class;
  return one == EP_DEVICE_CLASS_SOFTWARE || one == EP_DEVICE_CLASS_ACCELERATOR ? "only where it is named" : "";
}

// The names of the dtypes whose bit 1 << dtype is set.
nlohmann::json dtype_names(uint64_t dtypes) {
  nlohmann::json names = nlohmann::json::array();
#define EP_DTYPE(name, id, bits, type_class) \
  if ((dtypes >> id & 1) != 0) names.push_back(#name);
#include "ep_api/dtypes.def"
#undef EP_DTYPE
  return names;
}

}  // namespace

nlohmann::json device_json(const loader::ListedDevice& device, const std::string& chosen) {
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

std::vector<std::vector<std::string>> device_rows(const std::vector<loader::ListedDevice>& devices,
                                                  const std::string& chosen) {
  std::vector<std::vector<std::string>> rows = {{"device", "class", "memory", "name", ""}};
  for (const loader::ListedDevice& device : devices) {
    if (!device.same_as.empty()) continue;
    rows.push_back({device.spelling, class_name(device.info.device_class), memory_text(device.info), device.info.name,
                    note_of(device, chosen)});
    for (const loader::ListedDevice& other : devices) {
      if (other.same_as != device.spelling) continue;
      const std::string note = note_of(other, chosen);
      rows.push_back({fmt::format("  or {}", other.spelling), "", "", "the same hardware", note});
    }
  }
  return rows;
}

}  // namespace tenon::cli
