// The errors for a device that is not there: what there is, and why what could have matched was refused.
#pragma once

#include <string_view>

#include "loader/registry/registry.h"
#include "loader/select/spelling.h"
#include "primitives/status/status.h"

namespace tenon::loader {

// Both load every provider allowed, to be able to say. The registry's lock is held.
Status no_such_device(Registry& registry, std::string_view text, const Spelling& spelling);
// For a text that is no spelling: what parse_spelling said, with the devices there are and the spelling that may
// have been meant.
Status no_spelling(Registry& registry, std::string_view text, const Status& refused);
Status no_default_device(Registry& registry);

}  // namespace tenon::loader
