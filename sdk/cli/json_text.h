// Formats JSON for output. Bytes that are not UTF-8, for example in file names, become U+FFFD.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tenon::cli {

inline std::string json_text(const nlohmann::json& value, int indent = 2) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tenon::cli
