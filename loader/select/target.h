// Turns a spelling, or none, into a device of a loaded provider.
#pragma once

#include <string>
#include <string_view>

#include "loader/registry/registry.h"
#include "primitives/status/status.h"
#include "primitives/text/format.h"

namespace tenon::loader {

struct Target {
  Entry* entry;
  uint32_t index;
  std::string spelling() const { return fmt::format("{}:{}", entry->report.provider, index); }
};

// Finds the device that `spelling` means and loads only as many providers as necessary. The caller holds the registry's
// lock. Errors: those of open_device, except the errors of opening the device.
Result<Target> find_target(Registry& registry, std::string_view spelling);

}  // namespace tenon::loader
