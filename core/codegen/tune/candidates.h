// Candidates: tiles that may be better than the defaults for a kernel.
#pragma once

#include <vector>

#include "core/codegen/loop/ir.h"
#include "core/codegen/tactics/tiles.h"

namespace tenon::codegen {

// The candidates for a kernel that has its default loops (`scheduled`), the most promising first, without the defaults.
// All differ, but some may give the same loops or add in another order.
std::vector<Tiles> candidates(const Kernel& scheduled);

// Combines the changes of both; if both change a member, `first` wins.
Tiles joined(const Tiles& first, const Tiles& second);

}  // namespace tenon::codegen
