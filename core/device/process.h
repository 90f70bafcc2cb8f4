// Process: state of the process: whether an op has extra duties, whether this is a forked child, and the exit hook.
// Internal to the library.
//
// The runtime is never destroyed. The exit hook drains every device with a deadline and joins all threads of Tenon; an
// object that is dropped after the hook frees host memory only. In a forked child every call is an error and
// destructors do nothing.
//
// Threads: every function is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "primitives/status/status.h"

namespace tenon::process {

// One word that the inline path reads. It is 0 if an op only has to run. Otherwise a bit gives the reason: a trace is
// on, an ExecutionScope lists ops, the process is a forked child, or a function given to Tensor::access runs.
enum Attention : uint32_t { kTrace = 1, kForked = 2, kReport = 4, kCallback = 8 };
inline constinit std::atomic<uint32_t> attention{0};

inline bool forked() { return (attention.load(std::memory_order_relaxed) & kForked) != 0; }

// True once the exit hook has run: providers must not be called any more.
inline constinit std::atomic<bool> program_ended{false};
inline bool ended() { return program_ended.load(std::memory_order_acquire); }

// True once the exit hook has begun: calls take no further work.
inline constinit std::atomic<bool> ending{false};

// Why calls fail (usable).
Status why_unusable();

// Ok, or the reason why calls fail: the process is a forked child, it is ending, or the calling thread runs a callback
// (CallbackScope).
inline Status usable() {
  const bool calm = (attention.load(std::memory_order_relaxed) & (kForked | kCallback)) == 0;
  return calm && !ending.load(std::memory_order_relaxed) ? Status() : why_unusable();
}

// Functions of the application that may not submit work or wait for it.
enum class Callback : uint8_t {
  none,
  access,   // given to Tensor::access
  deleter,  // of borrowed memory, if it runs on a thread of the VM
};

// While this object lives, the calling thread runs `callback` and can neither submit work nor wait for it.
class CallbackScope {
 public:
  explicit CallbackScope(Callback callback);
  ~CallbackScope();
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;

 private:
  Callback previous_;
};

// The steps of the exit hook, in order.
enum class Ending : uint8_t {
  drain,  // wait for the work of devices; no work is accepted afterwards
  join,   // end threads
};

// Makes the exit hook call `function` in `step`; within a step, functions run in the order in which they
// were added. The first call registers the hook and the fork handler, and begins the trace of TENON_TRACE.
void at_end(Ending step, void (*function)());

}  // namespace tenon::process
