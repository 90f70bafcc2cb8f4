// Where 32 bits are enough for the indices of a text.
#pragma once

#include <optional>
#include <vector>

#include "core/codegen/loop/ir.h"

namespace tenon::codegen {

// The greatest number that is computed in 32 bits: a loop may add a step to one.
constexpr int64_t kMostNarrow = (int64_t{1} << 31) - (int64_t{1} << 20);

// What must hold of the parameters so that each index and each size that the text of `kernel` computes, and each number
// on the way to one, is no more than kMostNarrow and no less than its negative. Empty: that holds of all of them.
// Nothing: it is not known, or never holds. The sizes of the conditions are in the kernel's arena.
std::optional<std::vector<Condition>> narrow_conditions(Kernel* kernel);

}  // namespace tenon::codegen
