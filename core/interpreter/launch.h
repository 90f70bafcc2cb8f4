// Launch: turns a prepared call into instructions, on any rung. Internal.
#pragma once

#include "core/interpreter/operands.h"
#include "core/interpreter/prepared.h"

namespace tenon {

// How a run ended.
struct Ran {
  uint64_t bytes_moved = 0;  // between devices
  // The shapes are beyond the primitive, which has open dims; or kernels are there that were awaited: nothing happened.
  bool beyond = false;
};

// Launches a call that is at_once on its caller, if no tensor has pending work and process::attention is 0. False:
// nothing happened. kRoom as below.
template <size_t kRoom>
bool run_at_once(const OpCall& call, const Prepared& prepared);

// Runs `prepared` on the tensors of the call, on its rung, and fills the outputs. kRoom is how many tensors there is
// room for: kFewOperands or EP_MAX_OPERANDS.
template <size_t kRoom>
Ran run_prepared(OwnedInputs<kRoom>* owned, const Prepared& prepared);

}  // namespace tenon
