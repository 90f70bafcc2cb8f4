#include "loader/select/target.h"

#include <algorithm>

#include "loader/explain/no_match.h"
#include "loader/select/spelling.h"
#include "primitives/text/format.h"

namespace tenon::loader {
namespace {

// If the setting `providers` is empty, loads all providers, since any of them may have the best device. Otherwise the
// setting's order decides, and providers after the first with a possible default device are not loaded.
Result<Target> default_target(Registry& registry) {
  const bool in_order = !settings().providers.empty();
  std::vector<ListedDevice> devices;
  for (const std::string& name : registry.allowed_names()) {
    const Entry* entry = registry.provider(name);
    if (!entry) continue;
    const auto& own = entry->plugin->devices();
    devices.insert(devices.end(), own.begin(), own.end());
    if (in_order && choose_default(devices)) break;
  }
  const auto chosen = choose_default(devices);
  if (!chosen) return no_default_device(registry);
  return Target{registry.provider(devices[*chosen].provider), devices[*chosen].index};
}

std::optional<Target> match_in(Registry& registry, const Spelling& spelling, const std::string& name) {
  Entry* entry = registry.provider(name);
  if (!entry) return std::nullopt;
  const auto position = match_device(spelling, entry->plugin->devices());
  if (!position) return std::nullopt;
  return Target{entry, entry->plugin->devices()[*position].index};
}

bool is_usable(const Target& target) { return target.entry->plugin->devices()[target.index].info.usable(); }

Result<Target> target_of_any_provider(Registry& registry, const Spelling& spelling, std::string_view text) {
  std::optional<Target> unusable;
  for (const std::string& name : registry.allowed_names()) {
    const std::optional<Target> target = match_in(registry, spelling, name);
    if (target && is_usable(*target)) return *target;
    if (target && !unusable) unusable = target;
  }
  if (unusable) return *unusable;
  return no_such_device(registry, text, spelling);
}

Result<Target> named_target(Registry& registry, std::string_view text) {
  const Result<Spelling> parsed = parse_spelling(text);
  if (!parsed.ok()) return no_spelling(registry, text, parsed.status());
  const Spelling& spelling = parsed.value();
  if (spelling.provider.empty()) return target_of_any_provider(registry, spelling, text);
  const std::vector<std::string>& allowed = settings().providers;
  const bool is_allowed =
      allowed.empty() || std::find(allowed.begin(), allowed.end(), spelling.provider) != allowed.end();
  const std::optional<Target> target = is_allowed ? match_in(registry, spelling, spelling.provider) : std::nullopt;
  if (target) return *target;
  return no_such_device(registry, text, spelling);
}

}  // namespace

Result<Target> find_target(Registry& registry, std::string_view spelling) {
  const Settings& current = settings();
  TENON_RETURN_IF_ERROR(current.status);
  if (registry.is_shut_down()) {
    return Status(Code::cancelled, "no device can be opened: the runtime has been shut down.");
  }
  if (!spelling.empty()) return named_target(registry, spelling);
  if (current.device.empty()) return default_target(registry);
  Result<Target> target = named_target(registry, current.device);
  if (target.ok()) return target;
  return target.status().with_context(fmt::format("  while taking the default device from {}",
                                                  describe_origin("device", current.origins.at("device"))));
}

}  // namespace tenon::loader
