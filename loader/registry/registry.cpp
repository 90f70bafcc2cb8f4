#include "loader/registry/registry.h"

#include <algorithm>

#include "loader/log/log.h"
#include "loader/probe/probe.h"
#include "loader/search/search.h"
#include "loader/select/spelling.h"
#include "loader/settings/value.h"
#include "primitives/text/format.h"
#include "primitives/text/nearest.h"

namespace tenon::loader {
namespace {

void stop(Candidate& report, Stage stage, const Status& failure) {
  report.stage = stage;
  report.code = failure.code();
  report.sentence = failure.message();
  report.remedy = failure.remedy();
  const LogLevel level = failure.code() == Code::cancelled ? LogLevel::debug : LogLevel::info;
  if (!log_enabled(LogTopic::load, level)) return;
  log(LogTopic::load, level,
      fmt::format("{}: stopped at {}: {}",
                  report.path.empty() ? fmt::format("registered provider '{}'", report.provider) : report.path,
                  stage_name(stage), report.sentence));
}

bool is_listed(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Writes the devices of a candidate into its report. Fails if none of them is usable.
Status check_usable(Candidate& report) {
  const DeviceInfo& first = report.devices.front().info;
  const bool any = std::any_of(report.devices.begin(), report.devices.end(),
                               [](const ListedDevice& device) { return device.info.usable(); });
  if (!any) return Status(Code::unsupported, first.unusable_reason, first.remedy);
  report.sentence.clear();
  for (const ListedDevice& device : report.devices) {
    report.sentence += (report.sentence.empty() ? "" : ", ") + device.spelling;
  }
  return {};
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

std::string_view stage_name(Stage stage) {
  constexpr std::string_view names[] = {"found",      "trusted",    "note",   "probed", "loaded",
                                        "negotiated", "enumerated", "usable", "chosen"};
  return names[static_cast<size_t>(stage)];
}

Registry& Registry::instance() {
  static auto* registry = new Registry;
  return *registry;
}

void Registry::add(std::string name, ep_plugin_query_fn query) {
  if (!is_provider_name(name) || !query) {
    log(LogTopic::load, LogLevel::error,
        fmt::format("the provider '{}' cannot be registered: its name must be 1 to 31 lower-case letters, digits and "
                    "underscores, its query not NULL.",
                    name));
    return;
  }
  const auto used = [&](const std::unique_ptr<Entry>& entry) {
    return entry->report.provider == name && entry->plugin;
  };
  if (std::any_of(entries_.begin(), entries_.end(), used)) {
    log(LogTopic::load, LogLevel::error,
        fmt::format("the provider '{}' cannot be registered: one of that name is in use.", name));
    return;
  }
  auto entry = std::make_unique<Entry>();
  entry->report.provider = std::move(name);
  entry->report.source = "registered by the application";
  entry->registered = query;
  if (searched_) {
    entries_.insert(entries_.begin(), std::move(entry));
  } else {
    registered_.push_back(std::move(entry));
  }
}

void Registry::search() {
  if (searched_) return;
  searched_ = true;
  entries_ = std::move(registered_);
  registered_.clear();
  for (const PluginFolder& folder : plugin_folders(settings())) search_folder(folder.path, folder.source);
  const std::vector<std::string>& allowed = settings().providers;
  warn_of_absent(allowed);
  for (const auto& entry : entries_) {
    if (allowed.empty() || is_listed(allowed, entry->report.provider)) continue;
    stop(entry->report, Stage::found,
         Status(Code::cancelled, fmt::format("it is not among the providers allowed ({}).", joined(allowed)),
                "Add it to TENON_PROVIDERS, or to 'providers' in tenon.toml."));
  }
}

// The setting `providers` may name providers that this machine lacks. Only a name that looks mistyped gets a warning.
void Registry::warn_of_absent(const std::vector<std::string>& allowed) {
  std::vector<std::string> names;
  for (const auto& entry : entries_) names.push_back(entry->report.provider);
  for (const std::string& name : allowed) {
    if (is_listed(names, name)) continue;
    const std::string nearest = nearest_word(name, names);
    log(LogTopic::load, nearest.empty() ? LogLevel::info : LogLevel::warning,
        fmt::format("{} names '{}', which is not there{}",
                    describe_origin("providers", settings().origins.at("providers")), name,
                    nearest.empty() ? "." : fmt::format("; did you mean {}?", nearest)));
  }
}

void Registry::search_folder(const std::string& path, const std::string& source) {
  Result<std::vector<FoundFile>> files = find_plugins(path);
  SearchedFolder folder{path, source, 0, files.status()};
  if (files.ok()) {
    folder.candidates = static_cast<uint32_t>(files->size());
    for (const FoundFile& file : files.value()) add_file(file.path, file.name, source);
  } else if (source == "TENON_PLUGIN_PATH" || files.status().code() != Code::not_found) {
    log(LogTopic::load, LogLevel::warning, files.status().message());
  }
  folders_.push_back(std::move(folder));
}

void Registry::add_file(const std::string& path, const std::string& name, const std::string& source) {
  auto entry = std::make_unique<Entry>();
  entry->report.provider = name;
  entry->report.path = path;
  entry->report.source = source;
  if (!is_provider_name(name)) {
    stop(
        entry->report, Stage::found,
        Status(Code::invalid_argument,
               fmt::format(
                   "its name '{}' is not a provider's name: 1 to 31 lower-case letters, digits and underscores.", name),
               "Rename the file."));
  }
  entries_.push_back(std::move(entry));
}

Status Registry::check_duplicate(const Entry& entry) {
  for (const auto& earlier : entries_) {
    if (earlier.get() == &entry) break;
    const bool same = !earlier->file.path.empty() && earlier->file.identity.same_file(entry.file.identity);
    if (same) return Status(Code::cancelled, fmt::format("it is the same file as '{}'.", earlier->report.path));
  }
  return {};
}

Status Registry::take_step(Entry& entry, Stage stage) {
  Candidate& report = entry.report;
  switch (stage) {
    case Stage::trusted: {
      if (entry.registered) return {};
      TENON_ASSIGN_OR_RETURN(entry.file, open_checked(report.path, settings().trust == Trust::owned));
      return check_duplicate(entry);
    }
    case Stage::note: {
      if (entry.registered) return {};
      TENON_ASSIGN_OR_RETURN(entry.note, read_note(entry.file.descriptor.get(), entry.file.identity.size));
      report.version = entry.note.version;
      report.toolchain = entry.note.toolchain;
      report.kind = entry.note.kind;
      return check_note(entry.note, report.provider);
    }
    case Stage::probed: {
      if (entry.registered) return {};
      const bool is_flagged = (entry.note.flags & EP_NOTE_FLAG_PROBE_IN_CHILD) != 0;
      return probe_plugin({report.provider, entry.file, is_flagged, configured_values(report.provider)});
    }
    case Stage::loaded: {
      if (entry.registered) return {};
      TENON_ASSIGN_OR_RETURN(entry.library, Library::load(entry.file));
      entry.file.descriptor = Descriptor();
      return {};
    }
    case Stage::negotiated: {
      const ep_plugin_query_fn query = entry.registered ? entry.registered : entry.library->query();
      TENON_ASSIGN_OR_RETURN(entry.plugin, Plugin::make(report.provider, std::move(entry.library), query,
                                                        entry.file.path, configured_values(report.provider)));
      return {};
    }
    case Stage::enumerated: {
      TENON_RETURN_IF_ERROR(entry.plugin->enumerate());
      report.devices = entry.plugin->devices();
      return {};
    }
    case Stage::usable: return check_usable(report);
    case Stage::found:
    case Stage::chosen: return {};
  }
  return {};
}

void Registry::advance(Entry& entry, Stage until) {
  while (!entry.refused() && entry.report.stage < std::min(until, Stage::usable)) {
    const auto next = static_cast<Stage>(static_cast<int>(entry.report.stage) + 1);
    const Status step = take_step(entry, next);
    if (step.ok()) {
      entry.report.stage = next;
      continue;
    }
    entry.library.reset();
    entry.file.descriptor = Descriptor();
    if (next == Stage::enumerated) entry.plugin.reset();
    stop(entry.report, next, step);
  }
}

// An entry that was refused at `usable` still counts as the provider: it is loaded and has devices, though none is
// usable.
Entry* Registry::provider(const std::string& name) {
  search();
  for (const auto& entry : entries_) {
    if (entry->report.provider != name) continue;
    const bool fresh = !entry->plugin;
    advance(*entry, Stage::usable);
    if (!entry->plugin) continue;
    if (fresh) set_aside_others(*entry);
    if (fresh && log_enabled(LogTopic::load, LogLevel::info)) {
      log(LogTopic::load, LogLevel::info,
          fmt::format("loaded '{}' {} from {}: {}", name, entry->report.version,
                      entry->report.path.empty() ? "the application" : entry->report.path, entry->report.sentence));
    }
    return entry.get();
  }
  return nullptr;
}

void Registry::set_aside_others(const Entry& winner) {
  const std::string where = winner.report.path.empty() ? "the one registered by the application" : winner.report.path;
  for (const auto& entry : entries_) {
    if (entry.get() == &winner || entry->report.provider != winner.report.provider || entry->refused()) continue;
    const bool same = entry->report.version == winner.report.version && !winner.report.version.empty();
    stop(entry->report, Stage::found,
         Status(Code::cancelled,
                fmt::format("it is not loaded: '{}' comes first and has the same name{}", where,
                            same ? " and version." : "."),
                "Remove one of the two, or name the folder of the one you want first in TENON_PLUGIN_PATH."));
  }
}

std::vector<std::string> Registry::allowed_names() {
  search();
  if (!settings().providers.empty()) return settings().providers;
  std::vector<std::string> names;
  for (const auto& entry : entries_) {
    if (!is_listed(names, entry->report.provider)) names.push_back(entry->report.provider);
  }
  return names;
}

void Registry::advance_all(Stage until) {
  search();
  if (until >= Stage::loaded) {
    for (const std::string& name : allowed_names()) provider(name);
    return;
  }
  for (const auto& entry : entries_) advance(*entry, until);
}

std::vector<ListedDevice> Registry::devices() {
  std::vector<ListedDevice> all;
  for (const std::string& name : allowed_names()) {
    for (const auto& entry : entries_) {
      if (entry->report.provider != name || !entry->plugin) continue;
      const auto& devices = entry->plugin->devices();
      all.insert(all.end(), devices.begin(), devices.end());
    }
  }
  mark_same_hardware(all);
  return all;
}

void Registry::note_opening(Entry& entry, bool opened) {
  if (entry.refused()) return;
  entry.report.devices = entry.plugin->devices();
  if (opened) entry.report.stage = Stage::chosen;
  const Status usable = check_usable(entry.report);
  if (!usable.ok()) stop(entry.report, Stage::usable, usable);
}

std::vector<std::unique_ptr<Entry>>& Registry::entries() {
  search();
  return entries_;
}

const std::vector<SearchedFolder>& Registry::folders() {
  search();
  return folders_;
}

Status Registry::retire(std::string_view name) {
  for (const auto& entry : entries()) {
    if (entry->report.provider != name || !entry->plugin) continue;
    entry->plugin->retire();
    entry->plugin.reset();
    Candidate fresh;
    fresh.provider = entry->report.provider;
    fresh.path = entry->report.path;
    fresh.source = entry->report.source;
    entry->report = std::move(fresh);
    return {};
  }
  return Status(Code::not_found, fmt::format("the provider '{}' is not loaded.", name));
}

void Registry::shut_down() {
  shut_down_ = true;
  for (const auto& entry : entries_) {
    if (entry->plugin) entry->plugin->shut_down();
  }
}

void Registry::reset() {
  shut_down();
  entries_.clear();
  registered_.clear();
  folders_.clear();
  searched_ = false;
  shut_down_ = false;
}

}  // namespace tenon::loader
