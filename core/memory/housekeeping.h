// Housekeeping: one thread that ticks every allocator once a second. It starts when an allocator first holds free
// memory, and sleeps while no allocator holds any.
#pragma once

namespace tenon::memory {

// Starts or wakes the thread; call it when an allocator holds free memory. Cheap while the thread is awake. If the
// system cannot start a thread, allocators tick only on their slow paths.
void wake_housekeeping();
// Ends the thread and waits for it. Called at exit.
void stop_housekeeping();
// Ticks every allocator. True if an allocator still holds free memory.
bool tick_all();

}  // namespace tenon::memory
