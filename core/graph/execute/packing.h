// Prepares constants before the first run: packs those that primitives take packed, and reads the others from their
// files if they are unread (core/tensor/unread.h). Internal to core/graph/execute.
#pragma once

#include <memory>
#include <vector>

#include "core/graph/execute/executable.h"
#include "core/interpreter/constant.h"

namespace tenon::graph {

// True if the prepared launch of `step` takes input `input`, a constant, packed.
bool takes_packed(const Step& step, size_t input);

// Prepares the constants of all launches in parallel. Returns the packed constants; they stay packed as long as someone
// holds them. Errors: the first failure to read or pack a constant, in the order of the steps.
std::vector<std::shared_ptr<Constant>> ready_constants(const Executable& program);

}  // namespace tenon::graph
