// Search: which folders hold plug-ins, and which files in them are candidates.
#pragma once

#include <string>
#include <vector>

#include "loader/settings/settings.h"
#include "primitives/status/status.h"

namespace tenon::loader {

struct PluginFolder {
  std::string path;
  std::string source;  // "TENON_PLUGIN_PATH", "the user's folder", "a package", "beside the library", ...
};

struct FoundFile {
  std::string path;
  std::string name;  // the <name> of libtenon_<name>.so
};

// TENON_PLUGIN_PATH, the user's data folder, the folders that were added, the folder `tenon` beside the library that
// holds this code, the system's folders; each once. The user's folder and those that were added are left out where
// `settings.privileged`.
std::vector<PluginFolder> plugin_folders(const Settings& settings);

#pragma GCC visibility push(default)  // exported by libtenon.so
// Adds the folder `path`, an absolute one, to the search; in reports its source is `source`. What is added after the
// first search is not searched. Threads: any.
void add_plugin_folder(std::string path, std::string source);
#pragma GCC visibility pop
// Forgets the folders that were added.
void forget_plugin_folders();

// The folder of the shared library (or the program) that holds this code, resolved; empty if it cannot be told.
std::string library_folder();

// Every libtenon_*.so of `folder`, by name. Errors: the folder is not there (NOT_FOUND) or cannot be read.
Result<std::vector<FoundFile>> find_plugins(const std::string& folder);

}  // namespace tenon::loader
