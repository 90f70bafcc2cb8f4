// Decides whether a fault can lead to an outcome. Each function returns what is wrong, or an empty string.
#pragma once

#include <string>

#include "tests/unit/vm/program.h"

namespace tenon::testing {

// At most one instruction failed.
std::string explain(const Program& program, const Outcome& outcome);
// Device `lost` was lost. Results that do not depend on it are right, and no result is a wrong number.
std::string explain_lost(const Program& program, const Outcome& outcome, int lost);

}  // namespace tenon::testing
