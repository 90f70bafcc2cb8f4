// HostThread: the thread that runs the functions of one device's access instructions one after another. It starts with
// the first function. If the system cannot start a thread, the thread that launches the instruction runs its function.
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
  bool is_ours = false;  // an internal function: use run_own_function
};

// Runs `function(data)` on the calling thread, which cannot submit work meanwhile. Returns an exception of the function
// as the status.
Status run_host_function(const std::function<void(void*)>& function, void* data);
// Like run_host_function, for an internal function, which follows the rules without a check.
Status run_own_function(const std::function<void(void*)>& function, void* data);

class HostThread {
 public:
  // Takes over `work`, runs it on the thread unless `skipped`, and destroys it there, since the destructors of its
  // captures may call anything. Then instruction `number` of `stream` is done. No other function may be running.
  void run(HostWork* work, bool skipped, Stream* stream, uint64_t number);
  // Waits until instruction `number` of `stream` is done, at most `timeout_ns`.
  void wait(const Stream& stream, uint64_t number, uint64_t timeout_ns);
  // Ends the thread. If its function does not return, the thread is left running, since the process is ending.
  void stop();

 private:
  void run_thread();
  // Runs `work_` with the lock released; the lock is held before and after.
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
