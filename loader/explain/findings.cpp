#include "loader/explain/findings.h"

#include <algorithm>

#include "loader/select/spelling.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

bool is_gpu(const ListedDevice& device) {
  return device.info.device_class == EP_DEVICE_CLASS_DISCRETE || device.info.device_class == EP_DEVICE_CLASS_INTEGRATED;
}

std::string enumeration(const std::vector<std::string>& words, const char* last) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? fmt::format(" {} ", last) : ", ") + words[i];
  }
  return text;
}

// "UUID 3f2a...", "PCI address 0000:01:00.0": the proof that two devices are one.
std::string identity(const DeviceInfo& a, const DeviceInfo& b) {
  const bool by_uuid = a.uuid == b.uuid && a.uuid != decltype(a.uuid){};
  return by_uuid ? fmt::format("UUID {}", uuid_text(a.uuid)) : fmt::format("PCI address {}", pci_text(a.pci));
}

void add_same_hardware(const std::vector<ListedDevice>& devices, std::vector<Finding>* findings) {
  for (const ListedDevice& first : devices) {
    if (!first.same_as.empty()) continue;
    std::vector<std::string> names = {first.spelling};
    const ListedDevice* other = nullptr;
    for (const ListedDevice& device : devices) {
      if (device.same_as != first.spelling) continue;
      names.push_back(device.spelling);
      other = &device;
    }
    if (other == nullptr) continue;
    findings->push_back({fmt::format("{}{}{} ({}): one device, seen through {} providers.", enumeration(names, "and"),
                                     names.size() == 2 ? " are both " : " are all ", first.info.name,
                                     identity(first.info, other->info), names.size()),
                         "Name the one you want, or order the providers with TENON_PROVIDERS."});
  }
}

// For each provider that could have had a GPU: the reason it gives for having none. Either it was refused when the host
// or its child process asked for its devices, or all its GPUs are unusable.
std::vector<std::string> disappointments(const std::vector<ListedDevice>& devices,
                                         const std::vector<Candidate>& candidates) {
  std::vector<std::string> lines;
  for (const Candidate& candidate : candidates) {
    const bool asked =
        (candidate.stage == Stage::enumerated || candidate.stage == Stage::probed) && candidate.code != Code::ok;
    if (asked) lines.push_back(fmt::format("{}: {}", candidate.provider, candidate.sentence));
  }
  for (const ListedDevice& device : devices) {
    if (is_gpu(device) && !device.info.usable())
      lines.push_back(fmt::format("{} ({}): {}", device.spelling, device.info.name, device.info.unusable_reason));
  }
  return lines;
}

void add_no_gpu(const std::vector<ListedDevice>& devices, const std::vector<Candidate>& candidates,
                std::vector<Finding>* findings) {
  const bool any = std::any_of(devices.begin(), devices.end(),
                               [](const ListedDevice& device) { return is_gpu(device) && device.info.usable(); });
  if (any) return;
  std::string sentence = "no GPU can be used";
  for (const std::string& line : disappointments(devices, candidates)) sentence += fmt::format("\n  {}", line);
  if (sentence.find('\n') == std::string::npos) sentence += ": no provider found one.";
  std::vector<std::string> software;
  for (const ListedDevice& device : devices) {
    if (device.info.device_class == EP_DEVICE_CLASS_SOFTWARE && device.info.usable())
      software.push_back(fmt::format("{} ({})", device.spelling, device.info.name));
  }
  // No software device is proposed, since its class does not say whether it computes at all.
  if (!software.empty()) {
    sentence +=
        fmt::format("\n  software {}, used only where {} named: {}", software.size() == 1 ? "device" : "devices",
                    software.size() == 1 ? "it is" : "they are", enumeration(software, "and"));
  }
  findings->push_back({sentence, ""});
}

}  // namespace

std::vector<Finding> findings_of(const std::vector<ListedDevice>& devices, const std::vector<Candidate>& candidates) {
  std::vector<Finding> findings;
  add_same_hardware(devices, &findings);
  add_no_gpu(devices, candidates, &findings);
  return findings;
}

}  // namespace tenon::loader
