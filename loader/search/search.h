// Search: which folders hold plug-ins, and which files in them are candidates.
#pragma once

#include <string>
#include <vector>

#include "loader/settings/settings.h"
#include "primitives/status/status.h"

namespace tenon::loader {

struct PluginFolder {
  std::string path;
  std::string source;  // "TENON_PLUGIN_PATH", "the user's folder", "beside the library", "the system's folder"
};

struct FoundFile {
  std::string path;
  std::string name;  // the <name> of libtenon_<name>.so
};

// TENON_PLUGIN_PATH, the user's data folder, the folder `tenon` beside the library that holds this code, the system's
// folders; each once. The user's folder is left out where `settings.privileged`.
std::vector<PluginFolder> plugin_folders(const Settings& settings);

// The folder of the shared library (or the program) that holds this code, resolved; empty if it cannot be told.
std::string library_folder();

// Every libtenon_*.so of `folder`, by name. Errors: the folder is not there (NOT_FOUND) or cannot be read.
Result<std::vector<FoundFile>> find_plugins(const std::string& folder);

}  // namespace tenon::loader
