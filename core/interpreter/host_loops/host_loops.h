// Host loops: composites that the eager interpreter computes in one loop over memory of the host device, in place of
// many launches of other ops. Internal.
//
// A loop takes the calls that it is made for, row-major tensors of common dtypes, and gives the values that the ops
// give. Every other call, and every call with an error in it, is left to the ops.
#pragma once

#include "core/ops/op_call.h"

namespace tenon {

// Computes the call and fills its outputs. False: the loop does not take the call, and nothing happened.
using HostLoop = bool (*)(const OpCall& call);

// The loop of `op`; null if it has none.
HostLoop host_loop(const OpInfo& op);

}  // namespace tenon
