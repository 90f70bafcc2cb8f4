// The errors for a device that is not there: what there is, and why what could have matched was refused.
#pragma once

#include <string_view>

#include "loader/registry/registry.h"
#include "loader/select/spelling.h"
#include "primitives/status/status.h"

namespace tenon::loader {

// Both load every provider allowed, to be able to say. The registry's lock is held.
Status no_such_device(Registry& registry, std::string_view text, const Spelling& spelling);
Status no_default_device(Registry& registry);

}  // namespace tenon::loader
