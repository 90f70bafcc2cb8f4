// Housekeeping: one thread, started when an allocator first holds free memory, that ticks every allocator once a second
// and sleeps while none holds any.
#pragma once

namespace tenon::memory {

// There may be something to give back soon: starts or wakes the thread. Cheap when it is awake already.
void wake_housekeeping();
// Ends the thread and waits for it. Called at exit.
void stop_housekeeping();
// Ticks every allocator; true if one still holds free memory.
bool tick_all();

}  // namespace tenon::memory
