// The guard: the layer directly around the provider's functions, for every device. It turns an exception into INTERNAL,
// and records the provider and function that a thread is in (loader/host/plugin_call.h).
#pragma once

#include "loader/loader.h"

namespace tenon::loader {

// Puts the guard's functions in place of `device.ops`. The devices of a provider usually share one table. A process can
// guard kMostGuarded tables; further tables stay unguarded. Threads: any.
void guard_device(OpenDevice& device);

constexpr size_t kMostGuarded = 8;

}  // namespace tenon::loader
