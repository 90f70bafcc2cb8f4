#include "loader/settings/settings.h"

#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "loader/log/log.h"
#include "loader/settings/config_file.h"
#include "loader/settings/value.h"
#include "primitives/text/format.h"
#include "primitives/text/nearest.h"

namespace tenon::loader {
namespace {

// The words of each choice type, and for the other types none. One overload of parse_value per type of a row.
#define TENON_CHOICES(type, ...)                                          \
  constexpr std::string_view type##_choices = #__VA_ARGS__;               \
  Reason parse_value_##type(std::string_view text, loader::type& value) { \
    uint8_t position = 0;                                                 \
    Reason reason = parse_choice(text, type##_choices, position);         \
    if (reason.empty()) value = static_cast<loader::type>(position);      \
    return reason;                                                        \
  }
#include "loader/settings/settings.def"
#undef TENON_CHOICES
constexpr std::string_view Text_choices, Names_choices, Folders_choices, File_choices, Count_choices, Bytes_choices,
    LogSpec_choices;
constexpr auto parse_value_Text = parse_text;
constexpr auto parse_value_Names = parse_names;
constexpr auto parse_value_Folders = parse_folders;
constexpr auto parse_value_File = parse_text;
constexpr auto parse_value_Count = parse_count;
constexpr auto parse_value_Bytes = parse_bytes;
constexpr auto parse_value_LogSpec = parse_log_spec;

Reason assign(Settings& settings, std::string_view key, std::string_view text) {
#define TENON_SETTING(name, variable, type, initial, help) \
  if (key == #name) return parse_value_##type(text, settings.name);
#include "loader/settings/settings.def"
#undef TENON_SETTING
  return "there is no such setting";
}

std::vector<std::string> known_variables() {
  std::vector<std::string> names;
  for (const SettingRow& row : setting_rows()) {
    if (!row.variable.empty()) names.emplace_back(row.variable);
  }
  return names;
}

std::vector<std::string> known_keys() {
  std::vector<std::string> names;
  for (const SettingRow& row : setting_rows()) names.emplace_back(row.key);
  return names;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  const std::string nearest = nearest_word(word, known);
  return nearest.empty() ? std::string(".") : fmt::format("; did you mean {}?", nearest);
}

struct NamedConfig {
  std::string path;
  ConfigFile content;
};

Origin find_origin(const SettingRow& row, const SettingSources& sources, const std::vector<NamedConfig>& configs) {
  const auto argument = sources.arguments.find(row.key);
  if (argument != sources.arguments.end()) return {argument->second, Level::argument, ""};
  if (!sources.privileged && !row.variable.empty()) {
    const auto variable = sources.environment.find(row.variable);
    if (variable != sources.environment.end() && !variable->second.empty()) {
      return {variable->second, Level::environment, variable->first};
    }
  }
  if (row.key != "config") {
    for (const NamedConfig& config : configs) {
      const auto value = config.content.values.find(row.key);
      if (value != config.content.values.end()) return {value->second, Level::config, config.path};
    }
  }
  return {std::string(row.initial), Level::built_in, ""};
}

void keep_first(Status& kept, Status next) {
  if (kept.ok()) kept = std::move(next);
}

// True if a folder above `path` may not be searched, for example because HOME belongs to another user.
bool is_closed(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) != 0 && errno == EACCES;
}

std::vector<NamedConfig> read_configs(const SettingSources& sources, Settings& settings) {
  const auto& rows = setting_rows();
  const auto row = std::find_if(rows.begin(), rows.end(), [](const SettingRow& r) { return r.key == "config"; });
  const Origin named = find_origin(*row, sources, {});
  const std::vector<std::string> paths =
      named.text.empty() ? sources.config_files : std::vector<std::string>{named.text};
  std::vector<NamedConfig> configs;
  for (const std::string& path : paths) {
    Result<ConfigFile> content = read_config_file(path);
    if (content.ok()) {
      settings.config_files.push_back(path);
      configs.push_back({path, std::move(content).value()});
    } else if (named.text.empty() && is_closed(path)) {
      settings.warnings.push_back(
          fmt::format("the config file '{}' is ignored: a folder above it may not be searched.", path));
    } else if (!named.text.empty() || content.status().code() != Code::not_found) {
      keep_first(settings.status,
                 named.text.empty() ? content.status()
                                    : content.status().with_context(fmt::format(
                                          "  while reading the file that {} names", describe_origin("config", named))));
    }
  }
  return configs;
}

void warn_of_unknown(const SettingSources& sources, const std::vector<NamedConfig>& configs, Settings& settings) {
  const std::vector<std::string> variables = known_variables();
  for (const auto& [name, value] : sources.environment) {
    if (sources.privileged || std::find(variables.begin(), variables.end(), name) != variables.end()) continue;
    settings.warnings.push_back(
        fmt::format("the environment variable {} is unknown{}", name, suggestion(name, variables)));
  }
  const std::vector<std::string> keys = known_keys();
  for (const NamedConfig& config : configs) {
    for (const std::string& key : config.content.sections) {
      const bool known = std::find(keys.begin(), keys.end(), key) != keys.end();
      const std::string name = fmt::format("the section '{}' in '{}' ", key, config.path);
      if (known)
        keep_first(settings.status,
                   Status(Code::invalid_argument, fmt::format("{}is invalid: it is a setting's name.", name)));
      if (!known)
        settings.warnings.push_back(
            fmt::format("{}is unknown; settings of providers stand in [provider.<name>].", name));
    }
    for (const auto& [key, value] : config.content.values) {
      if (key == "config") {
        settings.warnings.push_back(
            fmt::format("the setting 'config' in '{}' is ignored: a config file names no other.", config.path));
      } else if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
        settings.warnings.push_back(
            fmt::format("the setting '{}' in '{}' is unknown{}", key, config.path, suggestion(key, keys)));
      }
    }
  }
}

struct Process {
  std::mutex mutex;
  std::map<std::string, std::string, std::less<>> arguments;
  std::atomic<const Settings*> resolved{nullptr};
  std::vector<std::unique_ptr<const Settings>> all;  // kept, since callers hold references
};

Process& process() {
  static auto* instance = new Process;
  return *instance;
}

const Settings& resolve_for_process(Process& state) {
  SettingSources sources = process_setting_sources();
  sources.arguments = state.arguments;
  state.all.push_back(std::make_unique<const Settings>(resolve_settings(sources)));
  const Settings& settings = *state.all.back();
  const Result<uint64_t> levels = parse_log_levels(settings.log);
  if (levels.ok()) log_levels.store(levels.value(), std::memory_order_relaxed);
  state.resolved.store(&settings, std::memory_order_release);
  return settings;
}

}  // namespace

std::string_view level_name(Level level) {
  constexpr std::string_view names[] = {"argument", "environment", "config file", "default"};
  return names[static_cast<size_t>(level)];
}

std::string describe_origin(std::string_view key, const Origin& origin) {
  switch (origin.level) {
    case Level::argument: return fmt::format("the argument '{}'", key);
    case Level::environment: return fmt::format("the environment variable {}", origin.where);
    case Level::config: return fmt::format("the setting '{}' in '{}'", key, origin.where);
    case Level::built_in: return fmt::format("the default of '{}'", key);
  }
  return std::string(key);
}

const std::vector<SettingRow>& setting_rows() {
  static const auto* rows = new std::vector<SettingRow>{
#define TENON_SETTING(key, variable, type, initial, help) {#key, variable, #type, type##_choices, initial, help},
#include "loader/settings/settings.def"
#undef TENON_SETTING
  };
  return *rows;
}

std::string user_folder(const char* variable, const char* fallback) {
  const char* base = secure_getenv(variable);
  if (base && base[0] == '/') return fmt::format("{}/tenon", base);
  const char* home = secure_getenv("HOME");
  if (home && home[0] == '/') return fmt::format("{}/{}/tenon", home, fallback);
  return {};
}

SettingSources process_setting_sources() {
  SettingSources sources;
  sources.privileged = getauxval(AT_SECURE) != 0;
  if (!sources.privileged) {
    for (char** entry = environ; entry && *entry; ++entry) {
      const char* equals = std::strchr(*entry, '=');
      if (!equals || std::strncmp(*entry, "TENON_", 6) != 0) continue;
      sources.environment.emplace(std::string(*entry, static_cast<size_t>(equals - *entry)), equals + 1);
    }
    const std::string own = user_folder("XDG_CONFIG_HOME", ".config");
    if (!own.empty()) sources.config_files.push_back(fmt::format("{}/tenon.toml", own));
  }
  sources.config_files.emplace_back("/etc/tenon/tenon.toml");
  return sources;
}

Settings resolve_settings(const SettingSources& sources) {
  Settings settings;
  settings.privileged = sources.privileged;
  const std::vector<NamedConfig> configs = read_configs(sources, settings);
  for (const SettingRow& row : setting_rows()) {
    Origin origin = find_origin(row, sources, configs);
    const Reason reason = assign(settings, row.key, origin.text);
    if (!reason.empty()) {
      const Reason ignored = assign(settings, row.key, row.initial);
      keep_first(settings.status,
                 Status(Code::invalid_argument, fmt::format("the value '{}' of {} is invalid: {}.", origin.text,
                                                            describe_origin(row.key, origin), reason)));
    }
    settings.origins.emplace(row.key, std::move(origin));
  }
  for (auto config = configs.rbegin(); config != configs.rend(); ++config) {
    for (const auto& [provider, values] : config->content.provider_values) {
      for (const auto& [key, value] : values) settings.provider_values[provider][key] = value;
    }
  }
  warn_of_unknown(sources, configs, settings);
  return settings;
}

const Settings& settings() {
  Process& state = process();
  if (const Settings* resolved = state.resolved.load(std::memory_order_acquire)) return *resolved;
  const Settings* fresh = nullptr;
  {
    std::lock_guard lock(state.mutex);
    if (const Settings* resolved = state.resolved.load(std::memory_order_acquire)) return *resolved;
    fresh = &resolve_for_process(state);
  }
  for (const std::string& warning : fresh->warnings) log(LogTopic::load, LogLevel::warning, warning);
  return *fresh;
}

Status set_argument(std::string_view key, std::string_view value) {
  const std::string name(key);
  const std::vector<std::string> keys = known_keys();
  if (std::find(keys.begin(), keys.end(), name) == keys.end()) {
    return Status(Code::invalid_argument, fmt::format("the argument '{}' is unknown{}", name, suggestion(name, keys)));
  }
  Settings scratch;
  const Reason reason = assign(scratch, key, value);
  if (!reason.empty()) {
    return Status(Code::invalid_argument,
                  fmt::format("the value '{}' of the argument '{}' is invalid: {}.", value, name, reason));
  }
  Process& state = process();
  std::lock_guard lock(state.mutex);
  state.arguments[name] = value;
  state.resolved.store(nullptr, std::memory_order_release);
  return {};
}

void reset_settings_for_tests() {
  Process& state = process();
  std::lock_guard lock(state.mutex);
  state.arguments.clear();
  state.resolved.store(nullptr, std::memory_order_release);
}

}  // namespace tenon::loader
