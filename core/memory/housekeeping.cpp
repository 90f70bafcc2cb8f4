#include "core/memory/housekeeping.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/device/process.h"
#include "primitives/status/start_thread.h"

namespace tenon::memory {
namespace {

constexpr std::chrono::seconds kTick{1};

struct Housekeeper {
  std::mutex mutex;
  std::condition_variable changed;
  std::thread thread;
  std::atomic<bool> awake{false};
  bool stopping = false;
  std::chrono::steady_clock::time_point next_try = {};

  // Returns false if no thread runs and the system cannot start one. Tries at most once per second.
  bool start() {
    if (thread.joinable()) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_try) return false;
    next_try = now + kTick;
    if (!start_thread(&thread, [this] { run(); })) return false;
    process::at_end(process::Ending::join, stop_housekeeping);
    return true;
  }

  void run() {
    std::unique_lock lock(mutex);
    while (!stopping) {
      if (!awake.load(std::memory_order_relaxed)) {
        changed.wait(lock);
        continue;
      }
      changed.wait_for(lock, kTick, [this] { return stopping; });
      if (stopping) return;
      lock.unlock();
      const bool more = tick_all();
      lock.lock();
      if (!more) awake.store(false, std::memory_order_relaxed);
    }
  }
};

// Never destroyed: allocators outlive main.
Housekeeper& housekeeper() {
  static auto* keeper = new Housekeeper;
  return *keeper;
}

}  // namespace

void wake_housekeeping() {
  Housekeeper& keeper = housekeeper();
  if (keeper.awake.load(std::memory_order_relaxed) || process::forked()) return;
  if (!process::usable().ok()) return;
  std::lock_guard lock(keeper.mutex);
  if (keeper.stopping || !keeper.start()) return;
  keeper.awake.store(true, std::memory_order_relaxed);
  keeper.changed.notify_all();
}

void stop_housekeeping() {
  Housekeeper& keeper = housekeeper();
  {
    std::lock_guard lock(keeper.mutex);
    keeper.stopping = true;
    keeper.changed.notify_all();
  }
  if (keeper.thread.joinable()) keeper.thread.join();
}

}  // namespace tenon::memory
