// Retires instructions, in ticket order, under the launch right. Here errors turn into poison.
#include "core/device/trace.h"
#include "core/vm/engine.h"
#include "core/vm/rules.h"

namespace tenon::vm {

bool DeviceQueue::retire_ready(Stream& stream) {
  const uint64_t first = stream.retired.load(std::memory_order_relaxed);
  uint64_t number = first;
  while (number < stream.completed) {
    Slot& slot = stream.slot(number + 1);
    for (uint8_t i = 0; i < slot.source_count; ++i) {
      const Ticket source = slot.sources[i];
      const bool here = source.stream() == stream.id;
      if (here ? source.number() <= number : is_done(source)) continue;
      if (number != first) stream.retired.store(number, std::memory_order_release);
      return number != first;
    }
    retire_slot(stream, slot, ++number);
    if ((number & 31) == 0) stream.retired.store(number, std::memory_order_release);
  }
  if (number != first) stream.retired.store(number, std::memory_order_release);
  return number != first;
}

// If an input failed, the instruction takes over the first such failure, even if it failed itself. Whether it ran on
// bad data or was skipped depends on timing; its outcome does not.
void DeviceQueue::settle_status(Slot& slot) {
  if (!holds(kPoison)) return;
  Engine& all = engine();
  std::lock_guard lock(all.submission);
  for (uint8_t i = 0; i < slot.source_count; ++i) {
    auto failed = all.failures.find(slot.sources[i].bits);
    if (failed == all.failures.end()) continue;
    slot.status = failed->second.status;
    slot.derived = true;
    return;
  }
}

void DeviceQueue::retire_slot(Stream& stream, Slot& slot, uint64_t number) {
  if (!slot.derived && slot.source_count != 0 && engine().failure_count.load(std::memory_order_acquire) != 0) {
    settle_status(slot);
  }
  if (!slot.status.ok()) [[unlikely]]
    publish_failure(stream, slot, number);
  if (slot.submitted_ns != 0) [[unlikely]] {
    trace_stream_span(slot.op, device_, stream.index, slot.launched_ns, trace_now(), number);
    slot.submitted_ns = 0;
  }
  if (slot.completion != nullptr) {
    slot.completion->status = slot.status;
    slot.completion = nullptr;
  }
  for (uint8_t i = 0; i < slot.storage_count; ++i) slot.storages[i]->release();
  slot.storage_count = 0;
  if (slot.kernel != nullptr) slot.kernel->release();
  slot.kernel = nullptr;
  if (slot.staging != nullptr) {
    if (slot.policy != Policy::upload && !slot.status.ok()) slot.staging->failure = slot.status;
    slot.staging->release();
  }
  slot.staging = nullptr;
  if (!slot.status.ok()) slot.status = Status();
}

void DeviceQueue::publish_failure(Stream& stream, Slot& slot, uint64_t number) {
  Engine& all = engine();
  const Ticket ticket = stream.ticket(number);
  std::lock_guard lock(all.submission);
  if (all.failures.size() >= 64) all.forget_failures();
  all.failures[ticket.bits] = {slot.status, all.sequence};
  all.failure_count.store(static_cast<uint32_t>(all.failures.size()), std::memory_order_release);
  for (uint8_t i = 0; i < slot.storage_count; ++i) {
    Storage* storage = slot.storages[i];
    if ((slot.output_mask >> i & 1) == 0 || storage->last_write.load(std::memory_order_relaxed) != ticket.bits)
      continue;
    if (!holds(kPoison)) continue;
    storage->poison = slot.status;
    storage->attention.store(true, std::memory_order_relaxed);
  }
  if (!slot.derived) unreported.add(slot.status, slot.sequence);
}

}  // namespace tenon::vm
