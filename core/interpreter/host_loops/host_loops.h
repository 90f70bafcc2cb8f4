// Host loops: composites that the eager interpreter computes in one loop over host memory, instead of many launches of
// other ops. Internal.
//
// A loop handles row-major tensors of common dtypes and computes the same values as the ops. It leaves all other calls,
// and all calls with an error, to the ops.
#pragma once

#include "core/ops/op_call.h"

namespace tenon {

// Computes the call and fills its outputs. False: the loop does not handle the call, and nothing was changed.
using HostLoop = bool (*)(const OpCall& call);

// The loop of `op`; null if it has none.
HostLoop host_loop(const OpInfo& op);

}  // namespace tenon
