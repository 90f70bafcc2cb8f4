// JSON as the tool prints it. Bytes that are no UTF-8, as names of files may have them, become U+FFFD.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tenon::cli {

inline std::string json_text(const nlohmann::json& value, int indent = 2) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace tenon::cli
