// The devices that the process has opened. Internal. Threads: every function is thread-safe. Owner: the process; a
// DeviceState is never destroyed.
#pragma once

#include <string_view>
#include <vector>

#include "core/device/device_state.h"
#include "primitives/status/status.h"

namespace tenon {

// The state of the device named by `spelling` ("" is the default device), opened when it was not yet.
Result<DeviceState*> device_state(std::string_view spelling);
// The state of the device named by `spelling`, opened now in a context of the application's. Errors: busy, if it is
// open; unsupported, if it opens in no such context.
Result<DeviceState*> adopt_device_state(std::string_view spelling, const ep_adopt_desc& desc);
// The device of class CPU that is synchronous and mapped, found by these properties.
Result<DeviceState*> host_device_state();
// Whether `device`, which is open, is that one. Throws if there is none.
bool is_host_device(const DeviceState* device);
// Every device opened so far and not retired.
std::vector<DeviceState*> all_devices();
// Does what tenon::retire says, but leaves the calling thread's current device to the caller.
Status retire_provider(std::string_view provider);

}  // namespace tenon
