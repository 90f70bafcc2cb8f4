// One tenon.toml: its top-level keys as text, and its [provider.<name>] sections.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "primitives/status/status.h"

namespace tenon::loader {

struct ConfigFile {
  std::map<std::string, std::string, std::less<>> values;  // lists joined as their variable would write them
  std::map<std::string, std::map<std::string, std::string>, std::less<>> provider_values;
  std::vector<std::string> sections;  // the names of all others
};

// Reads `path`. Errors: NOT_FOUND; it cannot be trusted (it can say what to trust, so others must not write it); it is
// not TOML, with the place; a value that is neither text, number, truth value nor a list of text.
Result<ConfigFile> read_config_file(const std::string& path);

}  // namespace tenon::loader
