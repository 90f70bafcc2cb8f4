#include "core/vm/host_thread.h"

#include <chrono>
#include <exception>
#include <utility>

#include "core/device/process.h"
#include "core/vm/engine.h"
#include "primitives/status/error.h"
#include "primitives/status/start_thread.h"
#include "primitives/text/format.h"

namespace tenon::vm {

Status run_host_function(const std::function<void(void*)>& function, void* data) {
  const process::CallbackScope scope(process::Callback::access);
  return run_own_function(function, data);
}

Status run_own_function(const std::function<void(void*)>& function, void* data) {
  try {
    function(data);
    return Status();
  } catch (const Error& error) {
    return Status(error.code(), error.what(), error.remedy());
  } catch (const std::exception& error) {
    return Status(Code::internal, fmt::format("the function threw an exception: {}", error.what()));
  } catch (...) {
    return Status(Code::internal, "the function threw something that is not a std::exception.");
  }
}

void HostThread::run(HostWork* work, bool skipped, Stream* stream, uint64_t number) {
  std::lock_guard lock(mutex_);
  work_ = work;
  skipped_ = skipped;
  stream_ = stream;
  number_ = number;
  if (!thread_.joinable() && !start_thread(&thread_, [this] { run_thread(); })) {
    // The caller runs the function after it has released the locks of the VM.
    run_deleter([this] {
      std::unique_lock own(mutex_);
      run_work(&own);
    });
  }
  changed_.notify_all();
}

void HostThread::wait(const Stream& stream, uint64_t number, uint64_t timeout_ns) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                    [&] { return stream.host_done.load(std::memory_order_acquire) >= number; });
}

void HostThread::run_thread() {
  enter_vm_thread();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return work_ != nullptr || stopping_; });
    if (work_ == nullptr) return;
    run_work(&lock);
  }
}

void HostThread::run_work(std::unique_lock<std::mutex>* lock) {
  HostWork* work = work_;
  const bool skipped = skipped_;
  lock->unlock();
  Status status;
  if (!skipped) status = (work->is_ours ? run_own_function : run_host_function)(work->function, work->data);
  delete work;
  lock->lock();
  work_ = nullptr;
  Stream& stream = *stream_;
  stream.host_status = std::move(status);
  stream.host_done.store(number_, std::memory_order_release);
  changed_.notify_all();
  lock->unlock();
  stream.queue->host_function_ended();
  lock->lock();
}

void HostThread::stop() {
  bool runs = false;
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    runs = work_ != nullptr;
    changed_.notify_all();
  }
  if (!thread_.joinable()) return;
  if (runs) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

}  // namespace tenon::vm
