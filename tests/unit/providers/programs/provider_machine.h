// The machine of the provider in the library PROGRAMS_PROVIDER. libtenon_x.so is registered twice, as x_a and x_b, so
// there are always two devices.
#pragma once

#include "tests/unit/vm/machine.h"

namespace tenon::testing {

// Opened at the first call.
Machine& provider_machine();

}  // namespace tenon::testing
