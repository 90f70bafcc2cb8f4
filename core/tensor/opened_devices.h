// The devices that the process has opened. Internal. Threads: every function is thread-safe. Owner: the process; a
// DeviceState is never destroyed.
#pragma once

#include <string_view>
#include <vector>

#include "core/device/device_state.h"
#include "primitives/status/status.h"

namespace tenon {

// The state of the device named by `spelling` ("" is the default device). Opens the device if it is not open.
Result<DeviceState*> device_state(std::string_view spelling);
// Opens the device named by `spelling` in a context of the application. Errors: busy, if it is open; unsupported, if it
// cannot open in such a context.
Result<DeviceState*> adopt_device_state(std::string_view spelling, const ep_adopt_desc& desc);
// The host device: the synchronous, mapped device of class CPU, found by these properties.
Result<DeviceState*> host_device_state();
// True if `device`, which is open, is the host device. Throws if there is none.
bool is_host_device(const DeviceState* device);
// Every open device that has not been retired.
std::vector<DeviceState*> all_devices();
// Implements tenon::retire, but leaves the calling thread's current device to the caller.
Status retire_provider(std::string_view provider);

}  // namespace tenon
