// Penalty: what an order of strides costs, in bytes that the device could bring into another order in the same time
// (ep_support_info.penalty_bytes). A planner weighs it against copies. Internal.
#pragma once

#include <cstdint>

#include "core/ops/op_call.h"
#include "primitives/status/status.h"

namespace tenon {

struct DeviceState;

// The penalty of each launch of `call`, whose inputs may lack data. An output that is defined has the strides to ask
// about; others have those of a new result. 0 for an op that no primitive computes.
// Errors: those of the op's inference; unsupported if the device refuses these strides, with its reason.
Result<uint64_t> penalty_of(const OpCall& call, DeviceState* device);

}  // namespace tenon
