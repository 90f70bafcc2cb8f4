// The errors for a device that was not found: they list the existing devices and say why each candidate that could have
// matched was refused.
#pragma once

#include <string_view>

#include "loader/registry/registry.h"
#include "loader/select/spelling.h"
#include "primitives/status/status.h"

namespace tenon::loader {

// Loads every allowed provider, since the message lists their devices. The caller holds the registry's lock.
Status no_such_device(Registry& registry, std::string_view text, const Spelling& spelling);
// The error for a text that is not a spelling: the error `refused` from parse_spelling, with the existing devices and
// the spelling that was probably meant. Loads every allowed provider too, under the registry's lock.
Status no_spelling(Registry& registry, std::string_view text, const Status& refused);
Status no_default_device(Registry& registry);

}  // namespace tenon::loader
