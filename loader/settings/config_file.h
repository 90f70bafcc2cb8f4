// One tenon.toml: its top-level keys as text, and its [provider.<name>] sections.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "primitives/status/status.h"

namespace tenon::loader {

struct ConfigFile {
  std::map<std::string, std::string, std::less<>> values;  // a list is joined as in the environment variable
  std::map<std::string, std::map<std::string, std::string>, std::less<>> provider_values;
  std::vector<std::string> sections;  // the names of all other sections
};

// Reads `path`. Errors: NOT_FOUND; the file is not trusted (nobody else may write it, since it can name trusted
// folders); the file is not TOML, with line and column; a value is not a text, a number, a boolean or a list of texts.
Result<ConfigFile> read_config_file(const std::string& path);

}  // namespace tenon::loader
