// Retires instructions, in ticket order, under the launch right. Here errors turn into poison.
#include <algorithm>
#include <utility>

#include "core/device/trace.h"
#include "core/vm/engine.h"
#include "core/vm/rules.h"

namespace tenon::vm {

namespace {

constexpr uint64_t kTogether = 32;  // instructions retired in a row before other threads see it

// Collects references to primitives and releases the references of one primitive together, since each release takes the
// cache line of the count from the submitting thread.
class PrimitiveReferences {
 public:
  void add(Primitive* primitive) {
    if (primitive != primitive_) give_back();
    primitive_ = primitive;
    ++count_;
  }
  void give_back() {
    if (primitive_ != nullptr) primitive_->release(count_);
    primitive_ = nullptr;
    count_ = 0;
  }

 private:
  Primitive* primitive_ = nullptr;
  int32_t count_ = 0;
};

// True if all sources of `slot` have retired. On its own stream, all instructions before `number` have.
bool sources_retired(const Stream& stream, const Slot& slot, uint64_t number) {
  const std::span<const Ticket> sources = slot.all_sources();
  return std::all_of(sources.begin(), sources.end(), [&](Ticket source) {
    return source.stream() == stream.id ? source.number() <= number : is_done(source);
  });
}

}  // namespace

bool DeviceQueue::retire_ready(Stream& stream) {
  const uint64_t first = stream.retired.load(std::memory_order_relaxed);
  uint64_t number = first;
  PrimitiveReferences primitives;
  const auto tell = [&] {
    primitives.give_back();
    stream.retired.store(number, std::memory_order_release);
  };
  while (number < stream.completed) {
    Slot& slot = stream.slot(number + 1);
    if (!sources_retired(stream, slot, number)) break;
    retire_slot(stream, slot, ++number);
    if (slot.primitive != nullptr) primitives.add(slot.primitive);
    if (number % kTogether == 0) tell();
  }
  if (number != first) tell();
  return number != first;
}

// If an input failed, the instruction takes over the first such failure, even if it failed itself. Whether it ran on
// bad data or was skipped depends on timing; its result must not.
void DeviceQueue::settle_status(Slot& slot) {
  if (!holds(kPoison)) return;
  Engine& all = engine();
  std::lock_guard lock(all.submission);
  for (Ticket source : slot.all_sources()) {
    auto failed = all.failures.find(source.bits);
    if (failed == all.failures.end()) continue;
    slot.status = failed->second.status;
    slot.derived = true;
    return;
  }
}

void DeviceQueue::retire_slot(Stream& stream, Slot& slot, uint64_t number) {
  if (!slot.derived && !slot.all_sources().empty() && engine().failure_count.load(std::memory_order_acquire) != 0) {
    settle_status(slot);
  }
  if (!slot.status.ok()) [[unlikely]]
    publish_failure(stream, slot, number);
  if (slot.submitted_ns != 0) [[unlikely]] {
    trace_stream_span(slot.op->op, device_, stream.index, slot.launched_ns, trace_now(), number);
    if (stream.times != nullptr) trace_device_time(stream, slot.op->op, number);
    slot.submitted_ns = 0;
  }
  for (Storage* storage : slot.all_storages()) storage->release();
  if (slot.has_extras) retire_extras(slot);
  if (!slot.status.ok()) slot.status = Status();
}

void DeviceQueue::trace_device_time(Stream& stream, std::string_view name, uint64_t number) {
  if (const auto span = stream.times->take(number)) {
    trace_device_span(name, device_, stream.index, span->begin, span->end, number);
  }
}

void DeviceQueue::retire_extras(Slot& slot) {
  const SlotExtras extras = std::exchange(slot.extras, SlotExtras());
  if (extras.completion != nullptr) extras.completion->status = slot.status;
  if (extras.staging == nullptr) return;
  if (slot.policy != Policy::upload && !slot.status.ok()) extras.staging->failure = slot.status;
  extras.staging->release();
}

void DeviceQueue::publish_failure(Stream& stream, Slot& slot, uint64_t number) {
  Engine& all = engine();
  const Ticket ticket = stream.ticket(number);
  std::lock_guard lock(all.submission);
  if (all.failures.size() >= 64) all.forget_failures();
  all.failures[ticket.bits] = {slot.status, all.sequence};
  all.failure_count.store(static_cast<uint32_t>(all.failures.size()), std::memory_order_release);
  const std::span<Storage* const> storages = slot.all_storages();
  for (size_t i = 0; i < storages.size(); ++i) {
    Storage* storage = storages[i];
    if (!slot.writes(i) || storage->last_write.load(std::memory_order_relaxed) != ticket.bits) continue;
    if (!holds(kPoison)) continue;
    storage->poison = slot.status;
    storage->attention.store(true, std::memory_order_relaxed);
  }
  if (!slot.derived) unreported.add(slot.status, slot.sequence);
}

}  // namespace tenon::vm
