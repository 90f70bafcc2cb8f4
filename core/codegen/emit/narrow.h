// Finds the sizes for which 32-bit indices are enough.
#pragma once

#include <optional>
#include <vector>

#include "core/codegen/loop/ir.h"

namespace tenon::codegen {

// The greatest number that may be computed in 32 bits. It leaves room for a loop to add one step.
constexpr int64_t kMostNarrow = (int64_t{1} << 31) - (int64_t{1} << 20);

// The conditions on the parameters under which every index and size that the text of `kernel` computes, intermediate
// results included, lies between -kMostNarrow and kMostNarrow. Empty: it always does. Nothing: unknown, or it never
// does. The sizes of the conditions are in the kernel's arena.
std::optional<std::vector<Condition>> narrow_conditions(Kernel* kernel);

}  // namespace tenon::codegen
