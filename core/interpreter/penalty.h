// Penalty: the cost of an order of strides, in bytes that the device could reorder in the same time
// (ep_support_info.penalty_bytes). A planner compares it with the cost of copies. Internal.
#pragma once

#include <cstdint>

#include "core/ops/op_call.h"
#include "primitives/status/status.h"

namespace tenon {

struct DeviceState;

// The penalty of each launch of `call`, whose inputs may lack data. A defined output gives the strides to ask about; an
// undefined one gets the strides of a new result. 0 for an op that no primitive computes. Errors: those of the op's
// inference; unsupported if the device refuses these strides, with its reason.
Result<uint64_t> penalty_of(const OpCall& call, DeviceState* device);

}  // namespace tenon
