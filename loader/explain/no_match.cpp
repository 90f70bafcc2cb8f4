#include "loader/explain/no_match.h"

#include <algorithm>

#include "loader/settings/nearest.h"

namespace tenon::loader {
namespace {

std::string describe(const DeviceRecord& device) {
  std::string text = device.spelling;
  if (!device.info.usable()) return text + " (unusable: " + device.info.unusable_reason + ")";
  return text + " (" + device.info.name + ", " + std::string(device_class_name(device.info.device_class)) + ")";
}

std::string what_there_is(Registry& registry) {
  std::string text;
  for (const DeviceRecord& device : registry.devices()) text += (text.empty() ? "" : ", ") + describe(device);
  return text.empty() ? "\n  there is no device at all" : "\n  there are: " + text;
}

struct Refusals {
  std::string lines, first_remedy;
};

// Of candidates called `name`, or of all where it is empty. Those set aside on purpose are told only to who asked by
// name.
Refusals refusals(Registry& registry, const std::string& name) {
  Refusals result;
  for (const auto& entry : registry.entries()) {
    const Candidate& report = entry->report;
    if (!entry->refused() || (!name.empty() && report.provider != name)) continue;
    if (name.empty() && report.code == Code::cancelled) continue;
    const std::string who = report.path.empty() ? "the registered provider '" + report.provider + "'" : report.path;
    result.lines += "\n  " + who + " was refused (" + std::string(stage_name(report.stage)) + "): " + report.sentence;
    if (result.first_remedy.empty()) result.first_remedy = report.remedy;
  }
  return result;
}

// `provider` may be empty. A privileged program has no environment.
std::string where_to_put_it(Registry& registry, const std::string& provider) {
  std::string folders;
  for (const SearchedFolder& folder : registry.folders()) folders += (folders.empty() ? "" : ", ") + folder.path;
  const std::string file = "libtenon_" + (provider.empty() ? "<name>" : provider) + ".so";
  const std::string variable =
      settings().privileged ? ""
                            : ", or set TENON_PLUGIN_PATH to the folder it is in (several are separated by colons)";
  return "Copy " + file + " into one of the folders searched: " + folders + variable + ".";
}

std::string remedy_for(Registry& registry, const std::string& provider) {
  const std::vector<DeviceRecord> devices = registry.devices();
  std::vector<std::string> names;
  for (const DeviceRecord& device : devices) {
    if (device.provider == provider) return "Name one of the devices there are.";
    names.push_back(device.provider);
  }
  const std::string nearest = provider.empty() ? provider : nearest_word(provider, names);
  return (nearest.empty() ? "" : "Did you mean " + nearest + "? If not: ") + where_to_put_it(registry, provider);
}

}  // namespace

Status no_such_device(Registry& registry, std::string_view text, const Spelling& spelling) {
  registry.advance_all(Stage::usable);
  const Refusals refused = refusals(registry, spelling.provider);
  std::string message = "there is no device '" + std::string(text) + "'." + what_there_is(registry) + refused.lines;
  const std::vector<std::string>& allowed = settings().providers;
  const bool forbidden = !spelling.provider.empty() && !allowed.empty() &&
                         std::find(allowed.begin(), allowed.end(), spelling.provider) == allowed.end();
  if (forbidden && refused.lines.empty()) {
    message += "\n  " + describe_origin("providers", settings().origins.at("providers")) + " does not allow it";
  }
  return Status(Code::not_found, std::move(message),
                refused.first_remedy.empty() ? remedy_for(registry, spelling.provider) : refused.first_remedy);
}

Status no_default_device(Registry& registry) {
  registry.advance_all(Stage::usable);
  const Refusals refused = refusals(registry, "");
  std::string message = "there is no device to use by default." + what_there_is(registry) + refused.lines;
  for (const DeviceRecord& device : registry.devices()) {
    if (!device.info.usable()) continue;
    return Status(Code::not_found, message + "\n  a software device is used only where it is named",
                  "Set TENON_DEVICE=" + device.spelling + ".");
  }
  return Status(Code::not_found, std::move(message),
                refused.first_remedy.empty() ? where_to_put_it(registry, "") : refused.first_remedy);
}

}  // namespace tenon::loader
