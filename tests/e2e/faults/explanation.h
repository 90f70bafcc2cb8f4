// Whether an outcome is one that a fault may lead to. Each answers with what is wrong, or nothing.
#pragma once

#include <string>

#include "tests/unit/vm/program.h"

namespace tenon::testing {

// At most one instruction failed.
std::string explain(const Program& program, const Outcome& outcome);
// Device `lost` was lost: what nothing of it can have reached is right, and no number is wrong anywhere.
std::string explain_lost(const Program& program, const Outcome& outcome, int lost);

}  // namespace tenon::testing
