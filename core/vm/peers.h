// Peers: devices of one provider. A device may be able to copy from its peer without passing through host memory.
#pragma once

#include "core/device/device_state.h"

namespace tenon::vm {

// True if `to` can copy from the memory of `from`. Asks the provider on the first call and caches the answer, unless it
// was an error.
bool are_peers(DeviceState* to, DeviceState* from);

}  // namespace tenon::vm
