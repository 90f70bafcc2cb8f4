// Constants before the first run: those that kernels take packed are packed, and those that they take as they are are
// read, if nobody has read them yet (core/tensor/unread.h). Internal to core/graph/execute.
#pragma once

#include <memory>
#include <vector>

#include "core/graph/execute/executable.h"
#include "core/interpreter/constant.h"

namespace tenon::graph {

// True if the prepared launch of `step` takes input `input`, a constant, packed.
bool takes_packed(const Step& step, size_t input);

// Makes the constants of all prepared launches ready, on as many threads as compute; gives those that are packed, which
// stay packed as long as somebody keeps them. Errors: those of the first constant, in the order of the steps, that
// could not be read or packed.
std::vector<std::shared_ptr<Constant>> ready_constants(const Executable& program);

}  // namespace tenon::graph
