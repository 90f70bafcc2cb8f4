// The rungs of the fallback ladder below native (README.md). Internal.
#pragma once

#include <cstdint>

#include "core/device/device_state.h"
#include "core/ops/op_call.h"

namespace tenon {

// Runs the op's decomposition and fills call.outputs.
void run_decomposed(const OpCall& call);
// Runs the op on the host device; returns the bytes moved between devices.
uint64_t run_on_host(const OpCall& call, DeviceState* device);

}  // namespace tenon
