// Peers: devices of one provider between which bytes go straight, without passing through host memory.
#pragma once

#include "core/device/device_state.h"

namespace tenon::vm {

// Whether `to` can copy from the memory of `from`. Asks the provider the first time, for good unless that was an error.
bool are_peers(DeviceState* to, DeviceState* from);

}  // namespace tenon::vm
