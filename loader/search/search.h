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

// The folders to search, each once: TENON_PLUGIN_PATH, the user's data folder, the added folders, the folder `tenon`
// beside the library that holds this code, the system's folders. With `settings.privileged` the user's folder and the
// added folders are left out.
std::vector<PluginFolder> plugin_folders(const Settings& settings);

#pragma GCC visibility push(default)  // exported by libtenon.so
// Adds the folder `path`, which is absolute, to the search; reports show `source`. A folder that is added after the
// first search is ignored. Threads: any.
void add_plugin_folder(std::string path, std::string source);
#pragma GCC visibility pop
// Removes the added folders.
void forget_plugin_folders();

// The resolved folder of the shared library (or the program) that holds this code. Empty if it is unknown.
std::string library_folder();

// Every libtenon_*.so of `folder`, sorted by name. Errors: the folder does not exist (NOT_FOUND) or cannot be read.
Result<std::vector<FoundFile>> find_plugins(const std::string& folder);

}  // namespace tenon::loader
