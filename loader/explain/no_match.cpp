#include "loader/explain/no_match.h"

#include <algorithm>
#include <cctype>

#include "loader/explain/class_word.h"
#include "primitives/text/format.h"
#include "primitives/text/nearest.h"

namespace tenon::loader {
namespace {

std::string describe(const ListedDevice& device) {
  std::string text = device.spelling;
  if (!device.info.usable()) return fmt::format("{} (unusable: {})", text, device.info.unusable_reason);
  return fmt::format("{} ({}, {})", text, device.info.name, device_class_name(device.info.device_class));
}

std::string what_there_is(Registry& registry) {
  std::string text;
  for (const ListedDevice& device : registry.devices()) text += (text.empty() ? "" : ", ") + describe(device);
  return text.empty() ? "\n  there is no device at all" : fmt::format("\n  there are: {}", text);
}

struct Refusals {
  std::string lines, first_remedy;
};

// The refusals of candidates called `name`, or of all if `name` is empty. A candidate that a setting excludes is listed
// only if the user asked for it by name.
Refusals refusals(Registry& registry, const std::string& name) {
  Refusals result;
  for (const auto& entry : registry.entries()) {
    const Candidate& report = entry->report;
    if (!entry->refused() || (!name.empty() && report.provider != name)) continue;
    if (name.empty() && report.code == Code::cancelled) continue;
    const std::string who =
        report.path.empty() ? fmt::format("the registered provider '{}'", report.provider) : report.path;
    result.lines += fmt::format("\n  {} was refused ({}): {}", who, stage_name(report.stage), report.sentence);
    if (result.first_remedy.empty()) result.first_remedy = report.remedy;
  }
  return result;
}

// `provider` may be empty. A privileged program has no environment.
std::string where_to_put_it(Registry& registry, const std::string& provider) {
  std::string folders;
  for (const SearchedFolder& folder : registry.folders()) folders += (folders.empty() ? "" : ", ") + folder.path;
  const std::string file = fmt::format("libtenon_{}.so", provider.empty() ? "<name>" : provider);
  const std::string variable =
      settings().privileged ? ""
                            : ", or set TENON_PLUGIN_PATH to the folder it is in (several are separated by colons)";
  return fmt::format("Copy {} into one of the folders searched: {}{}.", file, folders, variable);
}

// The names of all candidates, also of those without a device.
std::vector<std::string> candidate_names(Registry& registry) {
  std::vector<std::string> names;
  for (const auto& entry : registry.entries()) names.push_back(entry->report.provider);
  return names;
}

// The remedy for a wrong name.
struct Remedy {
  std::string suggestion, advice;
};

Status not_found(std::string message, Remedy remedy) {
  return Status(Failure{.code = Code::not_found,
                        .reason = std::move(message),
                        .suggestion = std::move(remedy.suggestion),
                        .advice = std::move(remedy.advice)});
}

// A long name with one wrong letter is a typing error. A short name may be another provider whose file is missing.
Remedy remedy_for(Registry& registry, std::string_view text, const std::string& provider) {
  const std::vector<ListedDevice> devices = registry.devices();
  const bool has_devices = std::any_of(devices.begin(), devices.end(), [&](const ListedDevice& device) {
    return provider.empty() || device.provider == provider;
  });
  if (has_devices) return {{}, "Name one of the devices there are."};
  const std::string nearest = provider.empty() ? provider : nearest_word(provider, candidate_names(registry));
  if (nearest.empty()) return {{}, where_to_put_it(registry, provider)};
  const std::string meant = fmt::format("{}{}", nearest, text.substr(provider.size()));
  const bool is_slip = edit_distance(provider, nearest) <= provider.size() / 4;
  return {meant, is_slip ? "" : fmt::format("If not: {}", where_to_put_it(registry, provider))};
}

// The names in the setting `providers` for which there is no candidate.
std::vector<std::string> absent_names(Registry& registry) {
  std::vector<std::string> absent;
  for (const std::string& name : settings().providers) {
    const auto& entries = registry.entries();
    const bool there =
        std::any_of(entries.begin(), entries.end(), [&](const auto& entry) { return entry->report.provider == name; });
    if (!there) absent.push_back(name);
  }
  return absent;
}

// If no device is left because the setting `providers` names absent providers, adds this to `message` and returns the
// remedy. Otherwise returns an empty one.
Remedy blame_list_of_providers(Registry& registry, std::string& message) {
  const std::vector<std::string> absent = absent_names(registry);
  if (absent.empty() || !registry.devices().empty()) return {};
  const std::string origin = describe_origin("providers", settings().origins.at("providers"));
  const std::vector<std::string> names = candidate_names(registry);
  std::string words;
  std::string meant;
  for (const std::string& name : absent) {
    words += fmt::format("{}{}'", words.empty() ? "'" : ", '", name);
    if (meant.empty()) meant = nearest_word(name, names);
  }
  message +=
      fmt::format("\n  {} allows no other provider than those it names, and there is none called {}", origin, words);
  return {meant, fmt::format("Correct {}, or remove it.", origin)};
}

std::string without_slips(std::string_view text) {
  std::string clean;
  for (char c : text) {
    if (!std::isspace(static_cast<unsigned char>(c))) {
      clean += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  while (clean.ends_with(':')) clean.pop_back();
  return clean;
}

// The spelling that a mistyped `text` probably means: the corrected `text` if it then names a provider that exists,
// else `text` with the nearest provider. Empty if there is none.
std::string meant_spelling(Registry& registry, std::string_view text) {
  const std::string clean = without_slips(text);
  const Result<Spelling> parsed = parse_spelling(clean);
  if (parsed.ok() && parsed.value().provider.empty()) return clean;
  const std::vector<std::string> names = candidate_names(registry);
  const size_t colon = std::min(clean.find(':'), clean.size());
  const std::string nearest = nearest_word(clean.substr(0, colon), names);
  if (nearest.empty()) return {};
  const std::string whole = nearest + clean.substr(colon);
  return parse_spelling(whole).ok() ? whole : nearest;
}

}  // namespace

Status no_spelling(Registry& registry, std::string_view text, const Status& refused) {
  registry.advance_all(Stage::usable);
  const std::string clean = without_slips(text);
  const std::string word = clean.substr(0, clean.find(':'));
  if (is_class_word(word, candidate_names(registry))) {
    return Status(refused.code(), refused.message() + what_there_is(registry) + refusals(registry, "").lines,
                  class_word_remedy(word, registry.devices()));
  }
  return Status(Failure{.code = refused.code(),
                        .reason = refused.message() + what_there_is(registry) + refusals(registry, "").lines,
                        .suggestion = meant_spelling(registry, text),
                        .advice = fmt::format("Provider names are lower case, without spaces. {}", refused.remedy())});
}

Status no_such_device(Registry& registry, std::string_view text, const Spelling& spelling) {
  registry.advance_all(Stage::usable);
  const bool is_class = is_class_word(spelling.provider, candidate_names(registry));
  const Refusals refused = refusals(registry, is_class ? "" : spelling.provider);
  std::string message = fmt::format("there is no device '{}'.{}{}", text, what_there_is(registry), refused.lines);
  if (is_class) {
    return Status(Code::not_found, std::move(message), class_word_remedy(spelling.provider, registry.devices()));
  }
  const std::vector<std::string>& allowed = settings().providers;
  const bool forbidden = !spelling.provider.empty() && !allowed.empty() &&
                         std::find(allowed.begin(), allowed.end(), spelling.provider) == allowed.end();
  if (forbidden && refused.lines.empty()) {
    message +=
        fmt::format("\n  {} does not allow it", describe_origin("providers", settings().origins.at("providers")));
  }
  if (refused.lines.empty()) {
    Remedy correct = blame_list_of_providers(registry, message);
    if (!correct.advice.empty()) return not_found(std::move(message), std::move(correct));
  }
  const bool is_there = !spelling.provider.empty() && !refused.lines.empty();
  const bool is_told = is_there || !refused.first_remedy.empty();
  return not_found(std::move(message),
                   is_told ? Remedy{{}, refused.first_remedy} : remedy_for(registry, text, spelling.provider));
}

Status no_default_device(Registry& registry) {
  registry.advance_all(Stage::usable);
  const Refusals refused = refusals(registry, "");
  std::string message =
      fmt::format("there is no device to use by default.{}{}", what_there_is(registry), refused.lines);
  for (const ListedDevice& device : registry.devices()) {
    if (!device.info.usable()) continue;
    return Status(Code::not_found, fmt::format("{}\n  a software device is used only where it is named", message),
                  "If one of these will do, set TENON_DEVICE to its name.");
  }
  Remedy correct = blame_list_of_providers(registry, message);
  if (!correct.advice.empty() && refused.first_remedy.empty()) {
    return not_found(std::move(message), std::move(correct));
  }
  return Status(Code::not_found, std::move(message),
                refused.first_remedy.empty() ? where_to_put_it(registry, "") : refused.first_remedy);
}

}  // namespace tenon::loader
