// Lifecycle: the end of the process, and fork. The runtime is never destroyed. An exit hook, registered when the first
// device is attached, drains the asynchronous devices with a deadline and joins every thread of ours; what is dropped
// after it frees host memory only. In a forked child every call is an error and destructors do nothing.
#pragma once

#include <atomic>

#include "core/vm/vm.h"

namespace tenon::vm {

inline bool forked() { return (attention.load(std::memory_order_relaxed) & kForked) != 0; }

// True once the exit hook has run: providers must not be called any more.
inline constinit std::atomic<bool> program_ended{false};
inline bool ended() { return program_ended.load(std::memory_order_acquire); }

// Ok, or why no call can be served: the process is a forked child, or it has ended.
Status usable();

// Registers the exit and fork hooks, once.
void register_exit_hook();

// Adds a function that the exit hook calls after all work was drained and before memory is given back: whoever keeps
// primitives destroys them there.
void at_end(void (*function)());

}  // namespace tenon::vm
