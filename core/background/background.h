// Work on background threads: calls to a device's compiler, and the search for better kernels. Internal to the library.
#pragma once

#include <functional>
#include <optional>

#include "core/background/compiling.h"
#include "core/device/device_state.h"

namespace tenon {

// Returns `wanted` if it is given, else the setting TENON_COMPILE. With deterministic algorithms programs always wait.
Compiling compiling(std::optional<Compiling> wanted);

// Queues `work` on the background thread of compilations, where it runs after earlier work. `work` must not throw. If
// the system cannot start a thread, `work` runs on the calling thread, which must hold no lock that `work` takes. When
// `device` or the process ends, work that has not begun is dropped, and a compiler that works for it is told to stop.
// Threads: any.
void compile_in_background(const DeviceState* device, std::function<void()> work);

// Like compile_in_background, on a second thread, for long work that nobody waits for. If the system cannot start a
// thread, the work is dropped.
void tune_in_background(const DeviceState* device, std::function<void()> work);

// Drops the queued work of `device` and returns when none of it runs any more. Must not be called by such work.
void end_compiling(const DeviceState* device);

// Returns when all work of compile_in_background is done.
void finish_compiling();
// Returns when all work of tune_in_background is done.
void finish_tuning();

}  // namespace tenon
