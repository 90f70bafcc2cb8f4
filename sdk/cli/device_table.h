// Devices as `devices` and `doctor` show them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "loader/loader.h"

namespace tenon::cli {

// `chosen` is the default device's spelling, empty where there is none.
nlohmann::json device_json(const loader::ListedDevice& device, const std::string& chosen);

// One row for each piece of hardware; what other providers call it stands in the rows below it.
std::vector<std::vector<std::string>> device_rows(const std::vector<loader::ListedDevice>& devices,
                                                  const std::string& chosen);

}  // namespace tenon::cli
