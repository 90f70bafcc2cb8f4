// Formats devices for `devices` and `doctor`.
#pragma once

#include <string>
#include <vector>

#include "loader/loader.h"

namespace tenon::cli {

// Returns the rows of the table, grouped by hardware: devices of other providers on the same hardware follow in
// separate rows. `chosen` is the spelling of the default device; empty if there is no default device.
std::vector<std::vector<std::string>> device_rows(const std::vector<loader::ListedDevice>& devices,
                                                  const std::string& chosen);

}  // namespace tenon::cli
