// The guard: what stands between the host and every device, next to the provider. It answers INTERNAL for a function
// that throws, and says in which function of which provider a thread is (loader/host/plugin_call.h).
#pragma once

#include "loader/loader.h"

namespace tenon::loader {

// Puts the guard's functions in place of `device.ops`. Devices of a provider mostly have one table. There is room for
// kMostGuarded tables in a process; further ones stay as they are. Threads: any.
void guard_device(OpenDevice& device);

constexpr size_t kMostGuarded = 8;

}  // namespace tenon::loader
