// Work on threads beside the program: what waits for a device's compiler, and what looks for better kernels. Internal
// to the library.
#pragma once

#include <functional>
#include <optional>

#include "core/background/compiling.h"
#include "core/device/device_state.h"

namespace tenon {

// What `wanted` says, or else the setting TENON_COMPILE. Deterministic algorithms wait in any case.
Compiling compiling(std::optional<Compiling> wanted);

// Has `work` run on the thread beside, after what came before it; `work` throws nothing. If the system has no thread
// left, `work` runs now, on the caller, who holds no lock that it takes. When `device` or the program ends, work that
// has not begun is dropped without a run, and a compiler that works for it is told to stop. Threads: any.
void compile_in_background(const DeviceState* device, std::function<void()> work);

// The same on a thread of its own, for work that may take long and that nobody waits for. Without a thread it is
// dropped.
void tune_in_background(const DeviceState* device, std::function<void()> work);

// Drops the work of `device`, and returns when none of it runs any more. Not to be called by such work.
void end_compiling(const DeviceState* device);

// Returns when no work of compile_in_background waits or runs.
void finish_compiling();
// The same of tune_in_background.
void finish_tuning();

}  // namespace tenon
