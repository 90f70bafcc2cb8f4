// Waits for tickets, storages and devices. A thread that waits launches the instructions that must be launched first.
#include <algorithm>
#include <chrono>
#include <thread>

#include "core/device/process.h"
#include "core/device/trace.h"
#include "core/vm/engine.h"
#include "core/vm/opaque.h"
#include "core/vm/rules.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::vm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kSliceNs = 100'000'000;
constexpr uint64_t kForEver = ~uint64_t{0};

// Logs which instructions are pending if a wait takes long: after report_after_ms, then after twice as long each time.
class Patience {
 public:
  void look(Ticket ticket) {
    const auto now = Clock::now();
    if (started_ == Clock::time_point()) {
      started_ = now;
      return;
    }
    if (now - started_ < next_) return;
    next_ *= 2;
    const auto seconds = std::chrono::round<std::chrono::seconds>(now - started_).count();
    Stream& stream = engine().stream(ticket);
    loader::log(loader::LogTopic::vm, loader::LogLevel::warning,
                fmt::format("waiting since {} s for instruction {} of {} stream {}: {}", seconds, ticket.number(),
                            stream.queue->device()->opened->spelling, stream.index, stream.queue->pending_text()));
  }

 private:
  Clock::time_point started_{};
  Clock::duration next_ = std::chrono::milliseconds(report_after_ms.load(std::memory_order_relaxed));
};

}  // namespace

bool is_done(Ticket ticket) { return Engine::stream(ticket).done(ticket.number()); }

Status wait_for(Ticket ticket, uint64_t timeout_ns) {
  Stream& stream = engine().stream(ticket);
  if (stream.done(ticket.number())) return Status();
  if (process::forked()) return process::usable();
  TraceScope trace("wait", "wait", stream.queue->device());
  const auto begin = timeout_ns == kForEver ? Clock::time_point() : Clock::now();
  Patience patience;
  for (;;) {
    const NextStep step = stream.queue->advance(ticket);
    if (step.mark != nullptr) {
      stream.queue->wait_mark(step.mark, std::min(kSliceNs, timeout_ns));
    } else if (step.on_host) {
      stream.queue->wait_host(step.on_host, std::min(kSliceNs, timeout_ns));
    } else if (step.elsewhere) {
      static_cast<void>(wait_for(step.elsewhere, std::min(kSliceNs, timeout_ns)));
    }
    if (stream.done(ticket.number())) return Status();
    if (timeout_ns != kForEver && Clock::now() - begin > std::chrono::nanoseconds(timeout_ns)) {
      return Status(Code::timeout, fmt::format("Work of {} is still pending: {}.",
                                               stream.queue->device()->opened->spelling, stream.queue->pending_text()));
    }
    if (timeout_ns == kForEver) patience.look(ticket);
  }
}

Status wait(Ticket ticket) { return ticket ? wait_for(ticket, kForEver) : Status(); }

Status settle(Storage* storage, bool write, bool whole) {
  if (!storage->busy_for_read()) return Status();
  TENON_RETURN_IF_ERROR(process::usable());
  TENON_RETURN_IF_ERROR(read_here(storage));
  Engine& all = engine();
  TicketList tickets;
  {
    std::lock_guard lock(all.submission);
    if (const Ticket last{storage->last_write.load(std::memory_order_relaxed)}) tickets.add(last);
    if (write) tickets.add(storage->reads);
  }
  for (Ticket ticket : tickets) TENON_RETURN_IF_ERROR(wait(ticket));
  std::lock_guard lock(all.submission);
  if (!storage->poison.ok()) {
    if (!whole) {
      all.told(storage->poison);
      return storage->poison;
    }
    if (holds(kHeal)) storage->poison = Status();
  }
  refresh(storage);
  return Status();
}

void pending_uses(Storage* storage, TicketList* out) {
  std::lock_guard lock(engine().submission);
  refresh(storage);
  if (const Ticket last{storage->last_write.load(std::memory_order_relaxed)}) out->add(last);
  out->add(storage->reads);
}

namespace {

Status wait_for_all(DeviceQueue& queue) {
  for (uint16_t i = 0; i < queue.stream_count(); ++i) {
    Stream& stream = queue.stream(i);
    TENON_RETURN_IF_ERROR(wait(stream.ticket(stream.submitted.load(std::memory_order_acquire))));
  }
  queue.device()->allocator->tick_if_due();
  return Status();
}

// The unreported error of the earliest submission among `queues`.
Status first_unreported(std::span<DeviceQueue* const> queues) {
  Engine& all = engine();
  std::lock_guard lock(all.submission);
  if (all.failure_count.load(std::memory_order_relaxed) != 0) all.forget_failures();
  DeviceQueue* first = nullptr;
  for (DeviceQueue* queue : queues) {
    if (queue->unreported.empty()) continue;
    if (first == nullptr || queue->unreported.first_sequence() < first->unreported.first_sequence()) first = queue;
  }
  return first == nullptr ? Status() : first->unreported.take_first();
}

}  // namespace

Status synchronize(DeviceState* device) {
  if (device->synchronous && engine().stream_count.load(std::memory_order_acquire) == 0) return Status();
  std::vector<DeviceQueue*> queues;
  {
    const std::lock_guard lock(engine().submission);
    for (DeviceQueue* queue : engine().queues) {
      if (queue == device->queue || queue->beside) queues.push_back(queue);
    }
  }
  if (queues.empty()) return Status();
  TENON_RETURN_IF_ERROR(process::usable());
  for (DeviceQueue* queue : queues) TENON_RETURN_IF_ERROR(wait_for_all(*queue));
  return first_unreported(queues);
}

Status synchronize_all() {
  TENON_RETURN_IF_ERROR(process::usable());
  std::vector<DeviceQueue*> queues;
  {
    std::lock_guard lock(engine().submission);
    queues = engine().queues;
  }
  for (DeviceQueue* queue : queues) TENON_RETURN_IF_ERROR(wait_for_all(*queue));
  return first_unreported(queues);
}

}  // namespace tenon::vm
