// HostThread: the thread that runs the functions of one device's access instructions, one after the other. It starts
// with the first function. If the system has no thread left, the thread that launches the instruction runs its
// function.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "primitives/status/status.h"

namespace tenon::vm {

struct Stream;

// The function of an access instruction, with its argument. Owner: the slot, then the thread.
struct HostWork {
  std::function<void(void*)> function;
  void* data = nullptr;  // the argument of the function
  bool is_ours = false;  // not the application's: run_own_function
};

// Runs `function(data)` on the calling thread, which cannot submit work meanwhile. An exception of the function comes
// back as the status.
Status run_host_function(const std::function<void(void*)>& function, void* data);
// The same of a function of ours, which knows what it may not do.
Status run_own_function(const std::function<void(void*)>& function, void* data);

class HostThread {
 public:
  // Takes `work` over, runs it on the thread unless `skipped`, and destroys it there, since the function may own things
  // whose destructors call anything. Then instruction `number` of `stream` is done. No other function may be running.
  void run(HostWork* work, bool skipped, Stream* stream, uint64_t number);
  // Waits until instruction `number` of `stream` is done, at most `timeout_ns`.
  void wait(const Stream& stream, uint64_t number, uint64_t timeout_ns);
  // Ends the thread. If its function does not return, the thread is left alone, since the process is ending.
  void stop();

 private:
  void run_thread();
  // Runs `work_` without the lock, which is held before and after.
  void run_work(std::unique_lock<std::mutex>* lock);

  std::mutex mutex_;
  std::condition_variable changed_;
  HostWork* work_ = nullptr;
  bool skipped_ = false;
  Stream* stream_ = nullptr;
  uint64_t number_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace tenon::vm
