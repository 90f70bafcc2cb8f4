// Settings: the values of the rows of settings.def, resolved once per process. For each key the highest level that
// gives a value wins: argument > environment > config file > default. If that value is invalid, it is an error
// (`status`); the next level is not tried.
//
// Threads: every function is thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "primitives/status/status.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon::loader {

#define TENON_CHOICES(type, ...) enum class type : uint8_t { __VA_ARGS__ };
#include "loader/settings/settings.def"
#undef TENON_CHOICES

namespace setting_type {
using Text = std::string;
using Names = std::vector<std::string>;
using Folders = std::vector<std::string>;
using File = std::string;
using Count = int32_t;
using Bytes = uint64_t;
using LogSpec = std::string;
using Fallback = loader::Fallback;
using VmMode = loader::VmMode;
using Trust = loader::Trust;
using Graphs = loader::Graphs;
using Fuse = loader::Fuse;
using Compile = loader::Compile;
using Check = loader::Check;
using Tune = loader::Tune;
using Deterministic = loader::Deterministic;
using Precision = loader::Precision;
using Probe = loader::Probe;
using Blobs = loader::Blobs;
}  // namespace setting_type

enum class Level : uint8_t { argument, environment, config, built_in };

// "argument", "environment", "config file", "default"
std::string_view level_name(Level level);

// The origin of a value: `text` is the value as written; `where` is the variable or the file, empty for other levels.
struct Origin {
  std::string text;
  Level level = Level::built_in;
  std::string where;
};

// "the environment variable TENON_DEVICE", "the setting 'device' in '/etc/tenon/tenon.toml'", ...
std::string describe_origin(std::string_view key, const Origin& origin);

struct Settings {
#define TENON_SETTING(key, variable, type, initial, help) setting_type::type key{};
#include "loader/settings/settings.def"
#undef TENON_SETTING

  // One for each row, by key.
  std::map<std::string, Origin, std::less<>> origins;
  // `[provider.<name>] key = "value"` of the config files, by provider and key.
  std::map<std::string, std::map<std::string, std::string>, std::less<>> provider_values;
  // True for set-user-id programs and the like: environment and user folders are ignored.
  bool privileged = false;
  // The config files that were read.
  std::vector<std::string> config_files;
  // Unknown variables and keys, with the nearest known name. One sentence each.
  std::vector<std::string> warnings;
  // The first invalid value; opening a device fails with it.
  Status status;
};

// The sources of settings. Tests give their own instead of the process's.
struct SettingSources {
  std::map<std::string, std::string, std::less<>> arguments;    // indexed by key
  std::map<std::string, std::string, std::less<>> environment;  // by variable; only variables that begin with TENON_
  std::vector<std::string> config_files;                        // the user's, then the system's; or only TENON_CONFIG's
  bool privileged = false;                                      // true: `environment` is ignored
};

// The sources of this process. Follows secure_getenv's rule: a privileged process has no environment and no user
// folders.
SettingSources process_setting_sources();
Settings resolve_settings(const SettingSources& sources);

// One row of the table, for help texts and reports.
struct SettingRow {
  std::string_view key, variable, type, choices, initial, help;
};
const std::vector<SettingRow>& setting_rows();

// The text of `tenon help env`, and the Markdown table of README.md, which leaves out the explanations.
std::string settings_help();
std::string settings_markdown();

// $XDG_<kind>_HOME/tenon, or ~/<fallback>/tenon; empty if there is neither or the process is privileged.
std::string user_folder(const char* variable, const char* fallback);

// The settings of this process, resolved at the first call. The reference stays valid forever.
const Settings& settings();
// Sets `key` at the level of an argument (a command-line option). Errors: no such key, invalid value.
Status set_argument(std::string_view key, std::string_view value);
// Forgets arguments. The next call resolves the settings again.
void reset_settings_for_tests();

// The number of threads that the program may use: the least of affinity, cgroup quota and TENON_THREADS.
int32_t thread_limit();

}  // namespace tenon::loader

#pragma GCC visibility pop
