// Asks a device how it would launch a call, before anything is created. A planner compares the answers. Internal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/ops/op_call.h"
#include "primitives/status/status.h"

namespace tenon {

struct DeviceState;

// A device's answer about the launch of a call.
struct LaunchTerms {
  std::string implementation = {};  // "onednn", "plain"; empty for an op that no primitive computes
  // The cost of the order of strides, in bytes that the device could reorder in the same time
  // (ep_support_info.penalty_bytes). A planner compares it with the cost of copies.
  uint64_t penalty = 0;
};

// The name of loops that are not optimised (ep_support_info.implementation).
inline bool is_plain(std::string_view implementation) { return implementation == "plain"; }

// The terms of each launch of `call`, whose inputs may lack data. A defined output gives the strides to ask about; an
// undefined one gets the strides of a new result. Errors: those of the op's inference; unsupported if the device
// refuses these strides, with its reason.
Result<LaunchTerms> launch_terms(const OpCall& call, DeviceState* device);

}  // namespace tenon
