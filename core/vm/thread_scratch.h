// ThreadScratch: the persistent scratch of one thread on one synchronous device (ep_launch::scratch). It is zeroed when
// it is made and after an error.
#pragma once

#include <cstdint>

#include "core/device/device_state.h"
#include "primitives/status/status.h"

namespace tenon::vm {

struct ThreadScratch {
  DeviceState* device = nullptr;
  memory::Block block;
  bool dirty = true;  // a failed launch may have left data
};

// The scratch of the calling thread on `device`: at least `bytes`, all zero. The thread keeps it.
Result<ThreadScratch*> thread_scratch_of(DeviceState* device, uint64_t bytes);

}  // namespace tenon::vm
