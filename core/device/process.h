// Process: facts of the process that every room asks for. Does an op have to do more than run? Is this a forked child?
// What happens at the end? Internal to the library.
//
// The runtime is never destroyed. The exit hook drains every device with a deadline and joins every thread of ours;
// an object that is dropped after the hook frees host memory only. In a forked child every call is an error and
// destructors do nothing.
//
// Threads: every function is thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "primitives/status/status.h"

namespace tenon::process {

// One word that the inline path reads. It is 0 if an op only has to run. Else a bit says why not: a trace is on, an
// ExecutionScope lists ops, the process is a forked child, or a function that was given to Tensor::access runs.
enum Attention : uint32_t { kTrace = 1, kForked = 2, kReport = 4, kCallback = 8 };
inline constinit std::atomic<uint32_t> attention{0};

inline bool forked() { return (attention.load(std::memory_order_relaxed) & kForked) != 0; }

// True once the exit hook has run: providers must not be called any more.
inline constinit std::atomic<bool> program_ended{false};
inline bool ended() { return program_ended.load(std::memory_order_acquire); }

// Ok, or why no call can be served: the process is a forked child, or it is ending, or the calling thread runs a
// callback (CallbackScope).
Status usable();

// The functions of the application that may not submit work or wait for it.
enum class Callback : uint8_t {
  none,
  access,   // given to Tensor::access
  deleter,  // of borrowed memory, on a thread of the VM
};

// While it lives, the calling thread runs `callback`. This thread can then neither submit work nor wait for work.
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
  drain,  // wait for the work of devices; no further work is taken from here on
  join,   // end threads
};

// Has the exit hook call `function` in the step `ending`; within a step the first function added runs first.
// The first call of any thread registers the hook and the fork handler, and begins the trace of TENON_TRACE.
void at_end(Ending ending, void (*function)());

}  // namespace tenon::process
