#include "core/vm/engine.h"

#include <algorithm>

namespace tenon::vm {
namespace {

// Plain data, so that it can be used to the very end of the thread.
struct PutOff {
  int depth;
  std::vector<std::function<void()>>* deleters;
};
thread_local constinit PutOff put_off{0, nullptr};

}  // namespace

Engine& engine() {
  static auto* one = new Engine;
  return *one;
}

void Engine::forget_failures() {
  uint64_t oldest = sequence + 1;
  for (uint32_t id = 1; id <= stream_count.load(std::memory_order_relaxed); ++id) {
    Stream& stream = *streams[id];
    const uint64_t retired = stream.retired.load(std::memory_order_acquire);
    if (retired == stream.submitted.load(std::memory_order_relaxed)) continue;
    oldest = std::min(oldest, stream.slot(retired + 1).sequence);
  }
  std::erase_if(failures, [&](const auto& entry) { return entry.second.sequence < oldest; });
  failure_count.store(static_cast<uint32_t>(failures.size()), std::memory_order_release);
}

void Engine::told(const Status& status) {
  for (DeviceQueue* queue : queues) queue->unreported.told(status, sequence);
}

Status tell(Status status) {
  if (status.ok()) return status;
  std::lock_guard lock(engine().submission);
  engine().told(status);
  return status;
}

DeleterScope::DeleterScope() { ++put_off.depth; }

DeleterScope::~DeleterScope() {
  if (--put_off.depth != 0 || put_off.deleters == nullptr) return;
  const std::unique_ptr<std::vector<std::function<void()>>> deleters(std::exchange(put_off.deleters, nullptr));
  for (auto& deleter : *deleters) deleter();
}

void run_deleter(std::function<void()> deleter) {
  if (put_off.depth == 0) return deleter();
  if (put_off.deleters == nullptr) put_off.deleters = new std::vector<std::function<void()>>;
  put_off.deleters->push_back(std::move(deleter));
}

}  // namespace tenon::vm
