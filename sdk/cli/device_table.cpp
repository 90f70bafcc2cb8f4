#include "sdk/cli/device_table.h"

#include "primitives/text/format.h"
#include "sdk/report/report.h"

namespace tenon::cli {
namespace {

std::string memory_text(const loader::DeviceInfo& info) {
  const uint64_t bytes = report::memory_bytes(info);
  if (bytes == 0) return "-";
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string note_of(const loader::ListedDevice& device, const std::string& chosen) {
  if (!device.info.usable()) return fmt::format("not usable: {}", device.info.unusable_reason);
  if (device.spelling == chosen) return "default";
  const int32_t one = device.info.device_class;
  return one == EP_DEVICE_CLASS_SOFTWARE || one == EP_DEVICE_CLASS_ACCELERATOR ? "only where it is named" : "";
}

}  // namespace

std::vector<std::vector<std::string>> device_rows(const std::vector<loader::ListedDevice>& devices,
                                                  const std::string& chosen) {
  std::vector<std::vector<std::string>> rows = {{"device", "class", "memory", "name", ""}};
  for (const loader::ListedDevice& device : devices) {
    if (!device.same_as.empty()) continue;
    rows.push_back({device.spelling, report::class_name(device.info.device_class), memory_text(device.info),
                    device.info.name, note_of(device, chosen)});
    for (const loader::ListedDevice& other : devices) {
      if (other.same_as != device.spelling) continue;
      const std::string note = note_of(other, chosen);
      rows.push_back({fmt::format("  or {}", other.spelling), "", "", "the same hardware", note});
    }
  }
  return rows;
}

}  // namespace tenon::cli
