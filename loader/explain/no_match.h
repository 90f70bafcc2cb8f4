// The errors for a device that is not there: they list the devices that are there, and say why each candidate that
// could have matched was refused.
#pragma once

#include <string_view>

#include "loader/registry/registry.h"
#include "loader/select/spelling.h"
#include "primitives/status/status.h"

namespace tenon::loader {

// Both functions load every provider that is allowed, since the message lists them. The caller holds the registry's
// lock.
Status no_such_device(Registry& registry, std::string_view text, const Spelling& spelling);
// The error for a text that is no spelling: `refused`, which parse_spelling gave, with the devices there are and the
// spelling that may have been meant.
Status no_spelling(Registry& registry, std::string_view text, const Status& refused);
Status no_default_device(Registry& registry);

}  // namespace tenon::loader
