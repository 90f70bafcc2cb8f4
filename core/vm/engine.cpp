#include "core/vm/engine.h"

#include <algorithm>
#include <exception>
#include <optional>

#include "core/device/process.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::vm {
namespace {

// Plain data, so that it can be used until the thread has ended.
struct PutOff {
  int depth;
  std::vector<std::function<void()>>* deleters;
};
thread_local constinit PutOff put_off{0, nullptr};
thread_local constinit bool on_vm_thread = false;

// An exception of a deleter has no receiver, so it is logged.
void run_now(const std::function<void()>& deleter) noexcept {
  std::optional<process::CallbackScope> scope;
  if (on_vm_thread) scope.emplace(process::Callback::deleter);
  const auto report = [](const char* what) {
    loader::log(loader::LogTopic::memory, loader::LogLevel::error,
                fmt::format("A deleter of borrowed memory threw: {}", what));
  };
  try {
    deleter();
  } catch (const std::exception& error) {
    report(error.what());
  } catch (...) {
    report("something that is not a std::exception");
  }
}

}  // namespace

Engine& engine() {
  static auto* one = new Engine;
  return *one;
}

uint64_t Engine::oldest_pending() {
  uint64_t oldest = sequence + 1;
  for (uint32_t id = 1; id <= stream_count.load(std::memory_order_relaxed); ++id) {
    Stream& stream = *streams[id];
    const uint64_t retired = stream.retired.load(std::memory_order_acquire);
    if (retired == stream.submitted.load(std::memory_order_relaxed)) continue;
    oldest = std::min(oldest, stream.slot(retired + 1).sequence);
  }
  return oldest;
}

void Engine::forget_failures() {
  const uint64_t oldest = oldest_pending();
  std::erase_if(failures, [&](const auto& entry) { return entry.second.sequence < oldest; });
  failure_count.store(static_cast<uint32_t>(failures.size()), std::memory_order_release);
}

void keep_until_done(std::vector<std::unique_ptr<const std::string>> labels) {
  if (labels.empty()) return;
  Engine& all = engine();
  std::lock_guard lock(all.submission);
  all.labels.push_back({all.sequence, std::move(labels)});
  const uint64_t oldest = all.oldest_pending();
  std::erase_if(all.labels, [&](const KeptLabels& kept) { return kept.sequence < oldest; });
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
  for (auto& deleter : *deleters) run_now(deleter);
}

void enter_vm_thread() { on_vm_thread = true; }

void run_deleter(std::function<void()> deleter) {
  if (put_off.depth == 0) return run_now(deleter);
  if (put_off.deleters == nullptr) put_off.deleters = new std::vector<std::function<void()>>;
  put_off.deleters->push_back(std::move(deleter));
}

}  // namespace tenon::vm
