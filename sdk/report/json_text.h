// Formats JSON for output. Bytes that are not UTF-8, for example in file names, become U+FFFD.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace tenon::report {

inline std::string json_text(const nlohmann::json& value, int indent = 2) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

// `value` as a number, or as "nan", "inf" or "-inf", which JSON lacks.
inline nlohmann::json json_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

}  // namespace tenon::report
