// Launch: turns a prepared call into instructions, on any rung. Internal.
#pragma once

#include "core/interpreter/operands.h"
#include "core/interpreter/prepared.h"

namespace tenon {

// Runs `prepared` on the tensors of the call, on its rung, and fills the outputs. Returns the bytes moved between
// devices. kRoom is how many tensors there is room for: kFewOperands or EP_MAX_OPERANDS.
template <size_t kRoom>
uint64_t run_prepared(OwnedInputs<kRoom>* owned, const Prepared& prepared);

}  // namespace tenon
