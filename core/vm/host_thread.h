// HostThread: the thread that runs the functions of one device's access instructions, one after the other. It starts
// with the first function.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "primitives/status/status.h"

namespace tenon::vm {

struct Stream;

// What an access instruction runs. Owner: the slot, then the thread.
struct HostWork {
  std::function<void(void*)> function;
  void* data = nullptr;  // what the function is given
};

// Runs `function(data)` on the calling thread, on which no work can be submitted meanwhile. What the function throws
// comes back as the status.
Status run_host_function(const std::function<void(void*)>& function, void* data);

class HostThread {
 public:
  // Takes `work` over and runs it; then it is instruction `number` of `stream` that is done. Nothing else runs now.
  void run(HostWork* work, Stream* stream, uint64_t number);
  // Waits until instruction `number` of `stream` is done, at most `timeout_ns`.
  void wait(const Stream& stream, uint64_t number, uint64_t timeout_ns);
  // Ends the thread. One whose function does not return is left alone: the process is ending.
  void stop();

 private:
  void run_thread();

  std::mutex mutex_;
  std::condition_variable changed_;
  HostWork* work_ = nullptr;
  Stream* stream_ = nullptr;
  uint64_t number_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tenon::vm
