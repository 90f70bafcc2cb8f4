// The rungs of the fallback ladder below native (README.md). Internal.
#pragma once

#include <cstdint>

#include "core/device/device_state.h"
#include "core/ops/op_call.h"

namespace tenon {

// Runs the op's decomposition and fills call.outputs. Returns the bytes that builtin ops among its parts moved between
// devices; these ops have no entries in the report.
uint64_t run_decomposed(const OpCall& call);
// Adds bytes that a builtin op moved between devices to the innermost decomposition of this thread.
void count_moved(uint64_t bytes);
// Runs the op on the host device; returns the bytes moved between devices.
uint64_t run_on_host(const OpCall& call, DeviceState* device);

}  // namespace tenon
