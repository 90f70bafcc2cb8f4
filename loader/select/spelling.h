// Spellings of devices, and the device that each means.
//
//   cpu              the best usable device of the provider: discrete, integrated, CPU, software; then the lowest index
//   cuda:1           by index
//   vulkan:uuid=...  by UUID, as 32 hexadecimal digits; dashes and a leading "GPU-" are ignored
//   cuda:pci=...     by PCI address, as 0000:01:00.0 or 01:00.0
//   uuid=..., pci=...  of the first provider that has such a device
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loader/loader.h"
#include "primitives/status/status.h"

namespace tenon::loader {

struct Spelling {
  enum class By : uint8_t { best, index, uuid, pci };
  std::string provider;  // empty: any
  By by = By::best;
  uint32_t index = 0;
  std::array<uint8_t, 16> uuid{};
  std::array<int64_t, 4> pci{};
};

// Errors: INVALID_ARGUMENT; the message lists the forms of spellings.
Result<Spelling> parse_spelling(std::string_view text);

// "3f2a..." without dashes; "0000:01:00.0".
std::string uuid_text(const std::array<uint8_t, 16>& uuid);
std::string pci_text(const std::array<int64_t, 4>& pci);

// The index in `devices` of the device that `spelling` means. An index, UUID or PCI address may mean an unusable
// device; the name of a provider alone never does.
std::optional<size_t> match_device(const Spelling& spelling, const std::vector<ListedDevice>& devices);

// The index of the device to use if none is named: discrete, integrated, CPU, in this order, then in the given order.
// Never a software device or an unusable one.
std::optional<size_t> choose_default(const std::vector<ListedDevice>& devices);

// True if a device of this class may be the default.
bool may_be_default(const DeviceInfo& info);

// True if both are the same hardware seen through two providers: their UUIDs are equal or, if one has no UUID, their
// PCI addresses are.
bool is_same_hardware(const ListedDevice& a, const ListedDevice& b);
// Sets same_as of each device to the first earlier one that is the same hardware.
void mark_same_hardware(std::vector<ListedDevice>& devices);

// "discrete", "integrated", "cpu", "software"
std::string_view device_class_name(int32_t device_class);

}  // namespace tenon::loader
