// From a spelling, or from none, to a device of a loaded provider.
#pragma once

#include <string>
#include <string_view>

#include "loader/registry/registry.h"
#include "primitives/status/status.h"

namespace tenon::loader {

struct Target {
  Entry* entry;
  uint32_t index;
  std::string spelling() const { return entry->report.provider + ":" + std::to_string(index); }
};

// Loads what it must to tell. The registry's lock is held. Errors: as open_device, but for opening.
Result<Target> find_target(Registry& registry, std::string_view spelling);

}  // namespace tenon::loader
