// The VM's exit functions: they drain every device with a deadline, join the launch threads, and log the errors that
// were never reported.
#include "core/device/process.h"
#include "core/vm/engine.h"
#include "loader/log/log.h"
#include "loader/settings/settings.h"
#include "primitives/text/format.h"

namespace tenon::vm {
namespace {

constexpr uint64_t kDrainNs = 10'000'000'000;

void warn(const std::string& text) { loader::log(loader::LogTopic::vm, loader::LogLevel::warning, text); }

std::vector<DeviceQueue*> all_queues() {
  std::lock_guard lock(engine().submission);
  return engine().queues;
}

void drain(DeviceQueue& queue) {
  for (uint16_t i = 0; i < queue.stream_count(); ++i) {
    Stream& stream = queue.stream(i);
    const uint64_t last = stream.submitted.load(std::memory_order_acquire);
    if (last == 0) continue;
    if (Status status = wait_for(stream.ticket(last), kDrainNs); !status.ok())
      return warn(fmt::format("at exit: {}", status.message()));
  }
}

void log_unreported(DeviceQueue& queue) {
  for (const Unreported::Entry& one : queue.unreported.entries()) {
    warn(fmt::format("at exit: an error that no call has reported: {}", one.status.message()));
  }
  if (queue.unreported.dropped() != 0) warn(fmt::format("at exit: {} further errors.", queue.unreported.dropped()));
}

void drain_queues() {
  for (DeviceQueue* queue : all_queues()) drain(*queue);
}

void stop_queues() {
  const std::vector<DeviceQueue*> queues = all_queues();
  for (DeviceQueue* queue : queues) queue->stop();
  for (DeviceQueue* queue : queues) log_unreported(*queue);
}

}  // namespace

void begin_life() {
  static const bool begun = [] {
    process::at_end(process::Ending::drain, drain_queues);
    process::at_end(process::Ending::join, stop_queues);
    synchronous_mode.store(loader::settings().vm == loader::VmMode::sync);
    return true;
  }();
  static_cast<void>(begun);
}

}  // namespace tenon::vm
