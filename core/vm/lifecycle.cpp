#include "core/vm/lifecycle.h"

#include <pthread.h>

#include <cstdlib>
#include <mutex>

#include "core/memory/housekeeping.h"
#include "core/vm/engine.h"
#include "core/vm/trace.h"
#include "loader/log/log.h"
#include "loader/settings/settings.h"

namespace tenon::vm {
namespace {

constexpr uint64_t kDrainNs = 10'000'000'000;

struct Endings {
  std::mutex mutex;
  std::vector<void (*)()> functions;
};

Endings& endings() {
  static auto* all = new Endings;
  return *all;
}

std::atomic<bool> ending{false};

void warn(const std::string& text) { loader::log(loader::LogTopic::vm, loader::LogLevel::warning, text); }

bool drain(DeviceQueue& queue) {
  for (uint16_t i = 0; i < queue.stream_count(); ++i) {
    Stream& stream = queue.stream(i);
    const uint64_t last = stream.submitted.load(std::memory_order_acquire);
    if (last == 0) continue;
    if (Status status = wait_for(stream.ticket(last), kDrainNs); !status.ok()) {
      warn("at exit: " + status.message());
      return false;
    }
  }
  return true;
}

void log_unreported(DeviceQueue& queue) {
  for (const Status& status : queue.unreported) warn("at exit, an error nobody asked for: " + status.message());
  if (queue.unreported_dropped != 0) warn("at exit: " + std::to_string(queue.unreported_dropped) + " further errors.");
}

void run_endings() {
  std::vector<void (*)()> functions;
  {
    std::lock_guard lock(endings().mutex);
    functions.swap(endings().functions);
  }
  for (auto function : functions) function();
}

void at_exit() {
  if (forked()) return;
  ending.store(true);
  std::vector<DeviceQueue*> queues;
  {
    std::lock_guard lock(engine().submission);
    queues = engine().queues;
  }
  bool drained = true;
  for (DeviceQueue* queue : queues) drained = drain(*queue) && drained;
  memory::stop_housekeeping();
  for (DeviceQueue* queue : queues) queue->stop();
  for (DeviceQueue* queue : queues) log_unreported(*queue);
  run_endings();
  program_ended.store(true, std::memory_order_release);
  if (Status status = trace_end(); !status.ok()) warn(status.message());
}

void in_child() { attention.fetch_or(kForked); }

}  // namespace

std::atomic<uint32_t> attention{0};

Status usable() {
  if (forked()) [[unlikely]] {
    return Status(Code::invalid_argument,
                  "This process is a fork of one that uses Tenon; a forked child may only exec.",
                  "Start workers before the first use of Tenon, or start them with exec (spawn) instead of fork.");
  }
  if (ending.load(std::memory_order_relaxed)) [[unlikely]] {
    return Status(Code::cancelled, "The program is ending; Tenon takes no further work.");
  }
  return Status();
}

void register_exit_hook() {
  static const bool registered = [] {
    std::atexit(at_exit);
    pthread_atfork(nullptr, nullptr, in_child);
    const loader::Settings& settings = loader::settings();
    if (!settings.trace.empty()) trace_begin(settings.trace);
    synchronous_mode.store(settings.vm == loader::VmMode::sync);
    return true;
  }();
  static_cast<void>(registered);
}

void at_end(void (*function)()) {
  std::lock_guard lock(endings().mutex);
  endings().functions.push_back(function);
}

}  // namespace tenon::vm
