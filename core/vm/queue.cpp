// DeviceQueue under its launch right: launching in ticket order, events, and retiring in ticket order.
#include <algorithm>
#include <chrono>

#include "core/device/trace.h"
#include "core/vm/engine.h"
#include "core/vm/inline.h"
#include "core/vm/rules.h"
#include "loader/log/log.h"

namespace tenon::vm {
namespace {

constexpr uint64_t kLaunchBatch = 64;  // instructions of one stream before the next stream gets its turn
constexpr int kTries = 3;              // to take a fault
constexpr uint64_t kEventEvery = 128;  // instructions without an event before one is recorded unasked

Status provider_error(const DeviceState* device, ep_status code, ep_error* error, std::string_view doing) {
  return loader::take_error(code, error, std::string(doing) + " on " + device->opened->spelling);
}

}  // namespace

Result<Stream*> DeviceQueue::add_stream() {
  std::lock_guard right(right_);
  const uint16_t index = stream_count_.load(std::memory_order_relaxed);
  if (index == streams_.size()) {
    return Status(Code::invalid_argument, device_->opened->spelling + " has " + std::to_string(index) +
                                              " streams already; more than that are not supported.");
  }
  ep_stream* handle = nullptr;
  ep_error* error = nullptr;
  const ep_status code = device_->ops.stream_create(device_->handle, &handle, &error);
  if (code != EP_STATUS_OK) return provider_error(device_, code, error, "creating a stream");
  if (Stream* stream = take_stream(handle, index)) return stream;
  device_->ops.stream_destroy(device_->handle, handle);
  return Status(Code::invalid_argument,
                "The process has " + std::to_string(Engine::kMaxStreams) + " streams already; more are not supported.");
}

// Launches and retires until nothing moves or about `budget` instructions were launched. True if anything moved.
bool DeviceQueue::progress(uint64_t budget) {
  bool any = false;
  for (bool moved = true; moved;) {
    moved = false;
    for (uint16_t i = 0; i < stream_count(); ++i) {
      Stream& stream = *streams_[i];
      if (stream.launched.load(std::memory_order_relaxed) != stream.submitted.load(std::memory_order_acquire)) {
        moved = launch_ready(stream, std::min(budget, kLaunchBatch)) || moved;
      }
      if (stream.retired.load(std::memory_order_relaxed) != stream.launched.load(std::memory_order_relaxed)) {
        const bool seen = observe(stream);
        moved = retire_ready(stream) || seen || moved;
      }
    }
    any = any || moved;
    if (budget <= kLaunchBatch) return any;
    budget -= kLaunchBatch;
  }
  return any;
}

bool DeviceQueue::launch_ready(Stream& stream, uint64_t budget) {
  const uint64_t first = stream.launched.load(std::memory_order_relaxed);
  const uint64_t last = std::min(stream.submitted.load(std::memory_order_acquire), first + budget);
  uint64_t number = first;
  while (number < last) {
    Slot& slot = stream.slot(number + 1);
    if (lost_.ok() && !slot.deps.empty() && !wait_dependences(stream, slot)) break;
    launch_slot(stream, slot, ++number);
    stream.launched.store(number, std::memory_order_release);
    if (number - stream.recorded >= kEventEvery) record(stream);
  }
  return number != first;
}

// False if a dependence is not launched yet, or belongs to another device and is not done. Else `stream` waits for all.
bool DeviceQueue::wait_dependences(Stream& stream, Slot& slot) {
  Engine& all = engine();
  for (Ticket ticket : slot.deps) {
    Stream& other = all.stream(ticket);
    if (other.done(ticket.number())) continue;
    if (other.queue != this || other.launched.load(std::memory_order_relaxed) < ticket.number()) return false;
  }
  for (Ticket ticket : slot.deps) {
    Stream& other = all.stream(ticket);
    if (other.done(ticket.number())) continue;
    EventMark* mark = event_covering(other, ticket.number());
    if (mark == nullptr) continue;
    ep_error* error = nullptr;
    const ep_status code = device_->ops.stream_wait_event(stream.handle, mark->handle, &error);
    if (code != EP_STATUS_OK) wait_instead(other, code, provider_error(device_, code, error, "waiting for an event"));
  }
  return true;
}

void DeviceQueue::launch_slot(Stream& stream, Slot& slot, uint64_t number) {
  if (slot.submitted_ns != 0) [[unlikely]]
    slot.launched_ns = trace_now();
  if (!lost_.ok()) {
    slot.status = lost_;
    return;
  }
  if (engine().failure_count.load(std::memory_order_acquire) != 0) {
    settle_status(slot);
    if (!slot.status.ok()) return;
  }
  if (slot.policy == Policy::upload && slot.staging != nullptr && !slot.staging->failure.ok() && holds(kPoison)) {
    slot.status = slot.staging->failure;
    slot.derived = true;
    return;
  }
  slot.status = call_provider(stream, slot, number);
}

Status DeviceQueue::call_provider(Stream& stream, Slot& slot, uint64_t number) {
  const ep_device_ops& ops = device_->ops;
  ep_error* error = nullptr;
  ep_status code = EP_STATUS_OK;
  switch (slot.policy) {
    case Policy::launch: {
      if (slot.scratch_bytes != 0) TENON_RETURN_IF_ERROR(prepare_scratch(stream, slot));
      ep_launch request{};
      request.operands = slot.buffers.data();
      request.shapes = slot.has_shapes ? slot.shapes.data() : nullptr;
      request.scalars = slot.scalars.data();
      request.operand_count = slot.operand_count;
      request.scalar_count = slot.scalar_count;
      request.workspace = slot.workspace;
      request.scratch = slot.scratch;
      request.tag = stream.ticket(number).bits;
      code = ops.primitive_launch(slot.kernel->primitive, stream.handle, &request, nullptr, &error);
      break;
    }
    case Policy::copy: code = ops.copy(stream.handle, slot.buffers[0], slot.buffers[1], slot.bytes, &error); break;
    case Policy::upload: code = ops.upload(stream.handle, slot.buffers[0], slot.host, slot.bytes, &error); break;
    case Policy::download: code = ops.download(stream.handle, slot.host, slot.buffers[0], slot.bytes, &error); break;
    case Policy::peer_copy:
      code = ops.peer_copy(stream.handle, slot.buffers[0], slot.peer, slot.buffers[1], slot.bytes, &error);
      break;
  }
  if (code == EP_STATUS_OK) [[likely]]
    return Status();
  if (slot.scratch_bytes != 0) stream.clean_scratch = {};
  const Status status = launch_error(loader::take_error(code, error, {}), slot.op,
                                     slot.kernel != nullptr ? slot.kernel->signature : std::string(), device_);
  if (code == EP_STATUS_DEVICE_LOST) lose(status);
  return status;
}

Status DeviceQueue::prepare_scratch(Stream& stream, const Slot& slot) {
  const ep_buffer& clean = stream.clean_scratch;
  if (clean.memory == slot.scratch.memory && clean.offset == slot.scratch.offset) return Status();
  // An upload under way may still read the shorter ones.
  if (zeros_.empty() || zeros_.back().size() < slot.scratch_bytes) zeros_.emplace_back(slot.scratch_bytes);
  ep_error* error = nullptr;
  const ep_status code =
      device_->ops.upload(stream.handle, slot.scratch, zeros_.back().data(), slot.scratch_bytes, &error);
  if (code != EP_STATUS_OK) return provider_error(device_, code, error, "zeroing scratch");
  stream.clean_scratch = slot.scratch;
  return Status();
}

EventMark* DeviceQueue::record(Stream& stream) {
  EventMark* mark = nullptr;
  ep_error* error = nullptr;
  ep_status code = EP_STATUS_OK;
  if (!free_marks_.empty()) {
    mark = free_marks_.back();
    free_marks_.pop_back();
  } else {
    ep_event* handle = nullptr;
    code = device_->ops.event_create(device_->handle, &handle, &error);
    if (code == EP_STATUS_OK) {
      mark = new EventMark;
      mark->handle = handle;
    }
  }
  if (mark != nullptr) code = device_->ops.event_record(mark->handle, stream.handle, &error);
  if (mark == nullptr || code != EP_STATUS_OK) {
    if (mark != nullptr) free_marks_.push_back(mark);
    wait_instead(stream, code, provider_error(device_, code, error, "recording an event"));
    return nullptr;
  }
  mark->point = stream.recorded = stream.launched.load(std::memory_order_relaxed);
  mark->passed = false;
  stream.events.push_back(mark);
  return mark;
}

// Waits, in the provider, for everything launched to `stream`; more than once where that fails.
Status DeviceQueue::synchronize(Stream& stream) {
  for (int tries = 1;; ++tries) {
    ep_error* error = nullptr;
    const ep_status code = device_->ops.stream_synchronize(stream.handle, &error);
    if (code == EP_STATUS_OK) return Status();
    const Status status = provider_error(device_, code, error, "waiting for a stream");
    if (code == EP_STATUS_DEVICE_LOST || tries == kTries) return status;
  }
}

// An event that cannot be had costs time, not the device: everything launched to the stream is waited for in its place.
void DeviceQueue::wait_instead(Stream& stream, ep_status code, const Status& why) {
  if (code == EP_STATUS_DEVICE_LOST || !lost_.ok()) return lose(why);
  if (const Status waited = synchronize(stream); !waited.ok()) return lose(waited);
  const uint64_t seen_before = stream.completed;
  while (!stream.events.empty()) pass(stream, stream.events.front());
  stream.completed = stream.recorded = stream.launched.load(std::memory_order_relaxed);
  if (device_->ops.stream_take_fault != nullptr) take_faults(stream, seen_before);
}

// The earliest event after instruction `number`, recorded now if there is none; null if that has been seen to be done.
EventMark* DeviceQueue::event_covering(Stream& stream, uint64_t number) {
  if (stream.completed >= number || !lost_.ok()) return nullptr;
  const auto found = std::lower_bound(stream.events.begin(), stream.events.end(), number,
                                      [](const EventMark* mark, uint64_t wanted) { return mark->point < wanted; });
  return found != stream.events.end() ? *found : record(stream);
}

// Takes an event that was seen off its stream.
void DeviceQueue::pass(Stream& stream, EventMark* mark) {
  stream.events.pop_front();
  mark->passed = true;
  if (mark->pins == 0) free_marks_.push_back(mark);
}

// Looks which events have fired, and takes the faults up to them.
bool DeviceQueue::observe(Stream& stream) {
  const uint64_t seen_before = stream.completed;
  while (!stream.events.empty()) {
    EventMark* mark = stream.events.front();
    ep_error* error = nullptr;
    const ep_status code = device_->ops.event_query(mark->handle, &error);
    if (code == EP_STATUS_BUSY) break;
    if (code != EP_STATUS_OK) {
      wait_instead(stream, code, provider_error(device_, code, error, "asking whether an event has fired"));
      break;
    }
    stream.completed = mark->point;
    pass(stream, mark);
  }
  if (!lost_.ok()) fail_unknown(stream, seen_before);
  if (stream.completed == seen_before) return false;
  if (device_->ops.stream_take_fault != nullptr && lost_.ok()) take_faults(stream, seen_before);
  return true;
}

// The device is lost, and whether what was launched after `seen_before` met bad data will never be known.
void DeviceQueue::fail_unknown(Stream& stream, uint64_t seen_before) {
  stream.completed = stream.launched.load(std::memory_order_relaxed);
  for (uint64_t i = std::max(seen_before, stream.retired.load(std::memory_order_relaxed)) + 1; i <= stream.completed;
       ++i) {
    if (stream.slot(i).status.ok()) stream.slot(i).status = lost_;
  }
}

void DeviceQueue::take_faults(Stream& stream, uint64_t seen_before) {
  const uint64_t launched = stream.launched.load(std::memory_order_relaxed);
  for (int failed = 0;;) {
    ep_fault fault{};
    ep_error* error = nullptr;
    const ep_status code = device_->ops.stream_take_fault(stream.handle, &fault, &error);
    if (code != EP_STATUS_OK) {
      const Status status = loader::take_error(code, error, {});
      if (code == EP_STATUS_NOT_FOUND) return;
      if (code != EP_STATUS_DEVICE_LOST && ++failed < kTries) continue;
      lose(status.with_context("while taking faults of " + device_->opened->spelling));
      return fail_unknown(stream, seen_before);
    }
    stream.clean_scratch = {};
    const uint64_t number = Ticket{fault.tag}.number();
    const bool overflow = (fault.flags & EP_FAULT_FLAG_OVERFLOW) != 0;
    for (uint64_t i = overflow ? seen_before + 1 : number; i <= (overflow ? launched : number); ++i) {
      if (i <= stream.retired.load(std::memory_order_relaxed) || i > launched) continue;
      Slot& slot = stream.slot(i);
      if (!slot.status.ok()) continue;
      const Status cause(Code::fault, i == number ? fault_sentence(fault)
                                                  : "a kernel met bad data, and the device lost count of which.");
      slot.status =
          launch_error(cause, slot.op, slot.kernel != nullptr ? slot.kernel->signature : std::string(), device_);
    }
  }
}

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

// The first failure among what the instruction read stands before its own: whether it ran on bad data or was skipped
// depends on timing, its outcome does not.
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
  for (uint8_t i = 0; i < slot.record_count; ++i) slot.records[i]->release_record();
  slot.record_count = 0;
  if (slot.kernel != nullptr) slot.kernel->release();
  slot.kernel = nullptr;
  if (slot.staging != nullptr) {
    if (slot.policy == Policy::download && !slot.status.ok()) slot.staging->failure = slot.status;
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
  for (uint8_t i = 0; i < slot.record_count; ++i) {
    Storage* storage = slot.records[i];
    if ((slot.output_mask >> i & 1) == 0 || storage->last_write.load(std::memory_order_relaxed) != ticket.bits)
      continue;
    if (!holds(kPoison)) continue;
    storage->poison = slot.status;
    storage->attention.store(true, std::memory_order_relaxed);
  }
  if (!slot.derived) unreported.add(slot.status, slot.sequence);
}

// The device is gone: whatever was launched counts as ended, whatever was not fails. Where it is not the device that
// says so, it may still be working on memory that will now be freed, and is waited for.
void DeviceQueue::lose(const Status& why) {
  if (!lost_.ok()) return;
  lost_ = Status(Code::device_lost, why.message(), why.remedy());
  for (uint16_t i = 0; i < stream_count() && why.code() != Code::device_lost; ++i) {
    static_cast<void>(synchronize(*streams_[i]));
  }
  for (uint16_t i = 0; i < stream_count(); ++i) {
    Stream& stream = *streams_[i];
    for (uint64_t n = stream.completed + 1; n <= stream.launched.load(std::memory_order_relaxed); ++n) {
      if (stream.slot(n).status.ok()) stream.slot(n).status = lost_;
    }
    stream.completed = stream.launched.load(std::memory_order_relaxed);
  }
}

uint64_t DeviceQueue::submissions() {
  uint64_t sum = 0;
  for (uint16_t i = 0; i < stream_count(); ++i) sum += streams_[i]->submitted.load(std::memory_order_seq_cst);
  return sum;
}

bool DeviceQueue::outstanding() {
  for (uint16_t i = 0; i < stream_count(); ++i) {
    if (streams_[i]->retired.load(std::memory_order_relaxed) !=
        streams_[i]->submitted.load(std::memory_order_acquire)) {
      return true;
    }
  }
  return false;
}

// Before the launch thread rests: an event behind everything that was launched, and a push for what was only batched.
void DeviceQueue::record_and_flush() {
  for (uint16_t i = 0; i < stream_count(); ++i) {
    Stream& stream = *streams_[i];
    const uint64_t launched = stream.launched.load(std::memory_order_relaxed);
    if (stream.retired.load(std::memory_order_relaxed) == launched || !lost_.ok()) continue;
    if (stream.recorded < launched) record(stream);
    if (device_->ops.stream_flush == nullptr) continue;
    ep_error* error = nullptr;
    const ep_status code = device_->ops.stream_flush(stream.handle, &error);
    if (code != EP_STATUS_OK) wait_instead(stream, code, provider_error(device_, code, error, "flushing a stream"));
  }
}

}  // namespace tenon::vm
