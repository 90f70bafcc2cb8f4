// Launch: turns a prepared call into instructions, on any rung. Internal.
#pragma once

#include "core/interpreter/operands.h"
#include "core/interpreter/prepared.h"

namespace tenon {

// The result of a run.
struct Ran {
  uint64_t bytes_moved = 0;  // between devices
  // True if nothing happened: the shapes are too large for the primitive, which has open dims; or kernels that were
  // awaited are ready.
  bool beyond = false;
};

// If `prepared` is at_once, no tensor has pending work and process::attention is 0, launches the call on the caller's
// thread. False: nothing happened. kRoom as below.
template <size_t kRoom>
bool run_at_once(const OpCall& call, const Prepared& prepared);

// Runs `prepared` on the tensors of the call, on its rung, and fills the outputs. kRoom is the capacity for tensors:
// kFewOperands or EP_MAX_OPERANDS.
template <size_t kRoom>
Ran run_prepared(OwnedInputs<kRoom>* owned, const Prepared& prepared);

}  // namespace tenon
