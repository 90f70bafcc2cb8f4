// Candidates: tiles that may be better than the defaults for a kernel.
#pragma once

#include <vector>

#include "core/codegen/loop/ir.h"
#include "core/codegen/tactics/tiles.h"

namespace tenon::codegen {

// In the order in which they are worth a try, without the defaults; some give the same loops as others or add in
// another order. `scheduled` has its default loops. No two of them are equal.
std::vector<Tiles> candidates(const Kernel& scheduled);

// Both changes: of a member that both change, that of `first`.
Tiles joined(const Tiles& first, const Tiles& second);

}  // namespace tenon::codegen
