#include "loader/select/spelling.h"

#include <algorithm>
#include <charconv>

#include "loader/settings/value.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

// Lower is better.
int rank_of(const DeviceInfo& info) {
  switch (info.device_class) {
    case EP_DEVICE_CLASS_DISCRETE: return 0;
    case EP_DEVICE_CLASS_INTEGRATED: return 1;
    case EP_DEVICE_CLASS_CPU: return 2;
    default: return 3;
  }
}

template <class T>
bool read_number(std::string_view text, T& value, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_uuid(std::string_view text, std::array<uint8_t, 16>& uuid) {
  if (text.starts_with("GPU-")) text.remove_prefix(4);
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits), [](char c) { return c != '-'; });
  if (digits.size() != 32) return false;
  for (size_t byte = 0; byte < uuid.size(); ++byte) {
    if (!read_number(std::string_view(digits).substr(2 * byte, 2), uuid[byte], 16)) return false;
  }
  return true;
}

// [domain:]bus:device.function, hexadecimal.
bool read_pci(std::string_view text, std::array<int64_t, 4>& pci) {
  pci = {};
  const size_t dot = text.rfind('.');
  if (dot == std::string_view::npos || !read_number(text.substr(dot + 1), pci[3], 16)) return false;
  text = text.substr(0, dot);
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || !read_number(text.substr(colon + 1), pci[2], 16)) return false;
  text = text.substr(0, colon);
  const size_t domain = text.rfind(':');
  if (domain != std::string_view::npos && !read_number(text.substr(0, domain), pci[0], 16)) return false;
  return read_number(domain == std::string_view::npos ? text : text.substr(domain + 1), pci[1], 16);
}

bool read_selector(std::string_view text, Spelling& spelling) {
  if (text.starts_with("uuid=")) {
    spelling.by = Spelling::By::uuid;
    return read_uuid(text.substr(5), spelling.uuid);
  }
  if (text.starts_with("pci=")) {
    spelling.by = Spelling::By::pci;
    return read_pci(text.substr(4), spelling.pci);
  }
  spelling.by = Spelling::By::index;
  return read_number(text, spelling.index, 10);
}

bool has_uuid(const DeviceInfo& info) {
  return std::any_of(info.uuid.begin(), info.uuid.end(), [](uint8_t byte) { return byte != 0; });
}

bool matches(const Spelling& spelling, const ListedDevice& device) {
  if (!spelling.provider.empty() && spelling.provider != device.provider) return false;
  switch (spelling.by) {
    case Spelling::By::best: return device.info.usable();
    case Spelling::By::index: return spelling.index == device.index;
    case Spelling::By::uuid: return has_uuid(device.info) && spelling.uuid == device.info.uuid;
    case Spelling::By::pci: return spelling.pci == device.info.pci;
  }
  return false;
}

}  // namespace

Result<Spelling> parse_spelling(std::string_view text) {
  Spelling spelling;
  bool good = false;
  if (text.starts_with("uuid=") || text.starts_with("pci=")) {
    good = read_selector(text, spelling);
  } else {
    const size_t colon = text.find(':');
    spelling.provider = text.substr(0, colon);
    good = is_provider_name(spelling.provider) &&
           (colon == std::string_view::npos || read_selector(text.substr(colon + 1), spelling));
  }
  if (good) return spelling;
  return Status(Code::invalid_argument, fmt::format("'{}' names no device.", text),
                "Write a provider (cpu), a provider and an index (cuda:1), or a provider and uuid= with 32 hexadecimal "
                "digits or pci= with an address as 0000:01:00.0.");
}

std::string uuid_text(const std::array<uint8_t, 16>& uuid) {
  std::string text;
  for (uint8_t byte : uuid) text += fmt::format("{:02x}", byte);
  return text;
}

std::string pci_text(const std::array<int64_t, 4>& pci) {
  const auto part = [&](size_t index) { return static_cast<unsigned>(pci[index]); };
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", part(0), part(1), part(2), part(3));
}

std::optional<size_t> match_device(const Spelling& spelling, const std::vector<ListedDevice>& devices) {
  std::optional<size_t> best;
  for (size_t position = 0; position < devices.size(); ++position) {
    if (!matches(spelling, devices[position])) continue;
    if (spelling.by == Spelling::By::index) return position;
    const auto quality = [&](size_t at) { return std::pair(!devices[at].info.usable(), rank_of(devices[at].info)); };
    if (!best || (spelling.by == Spelling::By::best ? quality(position) < quality(*best)
                                                    : quality(position).first < quality(*best).first)) {
      best = position;
    }
  }
  return best;
}

bool may_be_default(const DeviceInfo& info) { return info.usable() && rank_of(info) < 3; }

std::optional<size_t> choose_default(const std::vector<ListedDevice>& devices) {
  std::optional<size_t> best;
  for (size_t position = 0; position < devices.size(); ++position) {
    if (!may_be_default(devices[position].info)) continue;
    if (!best || rank_of(devices[position].info) < rank_of(devices[*best].info)) best = position;
  }
  return best;
}

bool is_same_hardware(const ListedDevice& a, const ListedDevice& b) {
  if (a.provider == b.provider) return false;
  if (has_uuid(a.info) && has_uuid(b.info)) return a.info.uuid == b.info.uuid;
  return a.info.pci[0] >= 0 && a.info.pci == b.info.pci;
}

void mark_same_hardware(std::vector<ListedDevice>& devices) {
  for (size_t position = 0; position < devices.size(); ++position) {
    const auto here = devices.begin() + static_cast<std::ptrdiff_t>(position);
    const auto first =
        std::find_if(devices.begin(), here, [&](const ListedDevice& other) { return is_same_hardware(other, *here); });
    devices[position].same_as = first == here ? std::string() : first->spelling;
  }
}

std::string_view device_class_name(int32_t device_class) {
  switch (device_class) {
    case EP_DEVICE_CLASS_CPU: return "cpu";
    case EP_DEVICE_CLASS_DISCRETE: return "discrete";
    case EP_DEVICE_CLASS_INTEGRATED: return "integrated";
    case EP_DEVICE_CLASS_SOFTWARE: return "software";
    case EP_DEVICE_CLASS_ACCELERATOR: return "accelerator";
    default: return "unknown";
  }
}

}  // namespace tenon::loader
