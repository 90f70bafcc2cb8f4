// Decides whether a fault can lead to an outcome. Each function returns a message if it cannot, otherwise an empty
// string.
#pragma once

#include <string>

#include "tests/unit/vm/program.h"

namespace tenon::testing {

// For a fault that makes at most one instruction fail.
std::string explain(const Program& program, const Outcome& outcome);
// For a loss of device `lost`: results that do not depend on it must be right, and no result may be a wrong number.
std::string explain_lost(const Program& program, const Outcome& outcome, int lost);

}  // namespace tenon::testing
