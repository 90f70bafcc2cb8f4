#include "core/background/background.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "core/background/cancellation.h"
#include "core/device/deterministic.h"
#include "core/device/process.h"
#include "loader/settings/settings.h"
#include "primitives/status/start_thread.h"

namespace tenon {
namespace {

struct Work {
  const DeviceState* device = nullptr;
  std::function<void()> run;
};

class Beside {
 public:
  // Returns false and does not take the work if no thread runs and the system cannot start one.
  bool add(const Work& work) {
    if (!process::usable().ok()) return true;
    const std::lock_guard lock(mutex_);
    if (ending_) return true;
    if (!thread_.joinable()) {
      if (!start_thread(&thread_, [this] { loop(); })) return false;
      process::at_end(process::Ending::drain, at_end_);
    }
    waiting_.push_back(work);
    changed_.notify_all();
    return true;
  }

  void end(const DeviceState* device) {
    std::deque<Work> dropped;  // destroyed without the lock
    std::unique_lock lock(mutex_);
    std::deque<Work> others;
    for (Work& work : waiting_) (work.device == device ? dropped : others).push_back(std::move(work));
    waiting_.swap(others);
    if (running_ == device) stop_.cancel();
    changed_.wait(lock, [&] { return running_ != device; });
    lock.unlock();
  }

  void finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ending_ || (waiting_.empty() && running_ == nullptr); });
  }

  // Never destroyed: programs may end after static objects.
  static Beside& compiling() {
    static auto* beside = new Beside([] { compiling().end(); });
    return *beside;
  }
  static Beside& tuning() {
    static auto* beside = new Beside([] { tuning().end(); });
    return *beside;
  }

 private:
  explicit Beside(void (*at_end)()) : at_end_(at_end) {}

  void end() {
    std::deque<Work> dropped;
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      dropped.swap(waiting_);
      stop_.cancel();
      changed_.notify_all();
    }
    thread_.join();
  }

  void loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (ending_) return;
      Work work = std::move(waiting_.front());
      waiting_.pop_front();
      running_ = work.device;
      const Cancellation stop = stop_ = Cancellation();
      lock.unlock();
      {
        const CancellationScope scope(stop);
        work.run();
        work.run = nullptr;  // releases what `run` holds while the device still exists
      }
      lock.lock();
      running_ = nullptr;
      changed_.notify_all();
    }
  }

  void (*const at_end_)();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
  std::deque<Work> waiting_;
  const DeviceState* running_ = nullptr;
  Cancellation stop_;  // stops the running work
  bool ending_ = false;
};

}  // namespace

Compiling compiling(std::optional<Compiling> wanted) {
  if (are_deterministic_algorithms_enabled()) return Compiling::wait;
  if (wanted) return *wanted;
  return loader::settings().compile == loader::Compile::wait ? Compiling::wait : Compiling::beside;
}

void compile_in_background(const DeviceState* device, std::function<void()> work) {
  if (!Beside::compiling().add({device, work})) work();
}

void tune_in_background(const DeviceState* device, std::function<void()> work) {
  static_cast<void>(Beside::tuning().add({device, std::move(work)}));
}

void end_compiling(const DeviceState* device) {
  if (process::forked()) return;
  Beside::compiling().end(device);
  Beside::tuning().end(device);
}

void finish_compiling() {
  if (!process::forked()) Beside::compiling().finish();
}

void finish_tuning() {
  if (!process::forked()) Beside::tuning().finish();
}

}  // namespace tenon
