// One tenon.toml: its top-level keys as text, and its [provider.<name>] sections.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "primitives/status/status.h"

namespace tenon::loader {

struct ConfigFile {
  std::map<std::string, std::string, std::less<>> values;  // a list is joined as its variable would write it
  std::map<std::string, std::map<std::string, std::string>, std::less<>> provider_values;
  std::vector<std::string> sections;  // the names of all others
};

// Reads `path`. Errors: NOT_FOUND; the file cannot be trusted (it can say what to trust, so nobody else may write it);
// the file is not TOML, with line and column; a value is neither text, number, truth value nor a list of text.
Result<ConfigFile> read_config_file(const std::string& path);

}  // namespace tenon::loader
