// Marks: events that are made on demand and shared by all instructions of their stream up to their point. They are
// queried and waited for under the launch right.
#include <algorithm>
#include <utility>

#include "core/vm/engine.h"
#include "core/vm/inline.h"

namespace tenon::vm {
namespace {

constexpr int kTries = 3;  // to wait for a stream

}  // namespace

EventMark* DeviceQueue::make_mark(Stream& stream) {
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
  mark->point = stream.marked = stream.launched.load(std::memory_order_relaxed);
  mark->passed = false;
  stream.events.push_back(mark);
  return mark;
}

// The earliest mark after instruction `number`, made now if there is none. Null: that instruction is known to be done,
// or the device is lost.
EventMark* DeviceQueue::event_covering(Stream& stream, uint64_t number) {
  if (stream.completed >= number || !lost_.ok()) return nullptr;
  if (stream.marked < number) return make_mark(stream);
  const auto found = std::lower_bound(stream.events.begin(), stream.events.end(), number,
                                      [](const EventMark* mark, uint64_t wanted) { return mark->point < wanted; });
  return found != stream.events.end() ? *found : make_mark(stream);
}

// Takes `mark`, which was seen, off its stream.
void DeviceQueue::pass(Stream& stream, EventMark* mark) {
  stream.events.pop_front();
  mark->passed = true;
  if (mark->pins == 0) free_marks_.push_back(mark);
}

// Looks which marks have fired, and takes the faults of the instructions before them.
bool DeviceQueue::observe(Stream& stream) {
  if (stream.on_host) return observe_host(stream);
  const uint64_t seen_before = stream.completed;
  // A mark that has fired stands for all marks before it. So steps get longer as long as marks have fired.
  for (size_t step = 1; !stream.events.empty();) {
    const size_t at = std::min(step, stream.events.size()) - 1;
    EventMark* mark = stream.events[at];
    ep_error* error = nullptr;
    const ep_status code = device_->ops.event_query(mark->handle, &error);
    if (code == EP_STATUS_BUSY && at == 0) break;
    if (code == EP_STATUS_BUSY) {
      step = 1;
      continue;
    }
    if (code != EP_STATUS_OK) {
      wait_instead(stream, code, provider_error(device_, code, error, "asking whether an event has fired"));
      break;
    }
    stream.completed = mark->point;
    for (size_t i = 0; i <= at; ++i) pass(stream, stream.events.front());
    step *= 2;
  }
  if (!lost_.ok()) fail_unknown(stream, seen_before);
  if (stream.completed == seen_before) return false;
  if (device_->ops.stream_take_fault != nullptr && lost_.ok()) take_faults(stream, seen_before);
  return true;
}

// Looks whether the function of the stream that runs has ended.
bool DeviceQueue::observe_host(Stream& stream) {
  const uint64_t done = stream.host_done.load(std::memory_order_acquire);
  if (done == stream.completed) return false;
  Slot& slot = stream.slot(done);
  if (!stream.host_status.ok()) {
    slot.status = launch_error(std::exchange(stream.host_status, Status()), slot.op, {}, device_);
  }
  stream.completed = done;
  return true;
}

// Waits, in the provider, for everything launched to `stream`. Tries again if that fails.
Status DeviceQueue::synchronize(Stream& stream) {
  for (int tries = 1;; ++tries) {
    ep_error* error = nullptr;
    const ep_status code = device_->ops.stream_synchronize(stream.handle, &error);
    if (code == EP_STATUS_OK) return Status();
    const Status status = provider_error(device_, code, error, "waiting for a stream");
    if (code == EP_STATUS_DEVICE_LOST || tries == kTries) return status;
  }
}

// Called where an event function failed with `why`. That costs time and not the device: the host waits for everything
// launched to the stream. Only if this wait fails too, or the device says so, is the device lost.
void DeviceQueue::wait_instead(Stream& stream, ep_status code, const Status& why) {
  if (code == EP_STATUS_DEVICE_LOST || !lost_.ok()) return lose(why);
  if (const Status waited = synchronize(stream); !waited.ok()) return lose(waited);
  const uint64_t seen_before = stream.completed;
  while (!stream.events.empty()) pass(stream, stream.events.front());
  stream.completed = stream.marked = stream.launched.load(std::memory_order_relaxed);
  if (device_->ops.stream_take_fault != nullptr) take_faults(stream, seen_before);
}

// Called before the launch thread rests: puts a mark behind everything that was launched, and flushes the streams.
void DeviceQueue::mark_and_flush() {
  for (uint16_t i = 0; i < stream_count(); ++i) {
    Stream& stream = *streams_[i];
    const uint64_t launched = stream.launched.load(std::memory_order_relaxed);
    if (stream.retired.load(std::memory_order_relaxed) == launched || !lost_.ok() || stream.on_host) continue;
    if (stream.marked < launched) make_mark(stream);
    if (device_->ops.stream_flush == nullptr) continue;
    ep_error* error = nullptr;
    const ep_status code = device_->ops.stream_flush(stream.handle, &error);
    if (code != EP_STATUS_OK) wait_instead(stream, code, provider_error(device_, code, error, "flushing a stream"));
  }
}

void DeviceQueue::wait_mark(EventMark* mark, uint64_t timeout_ns) {
  ep_error* error = nullptr;
  const ep_status code = device_->ops.event_host_wait(mark->handle, timeout_ns, &error);
  if (code != EP_STATUS_OK) static_cast<void>(loader::take_error(code, error, {}));
  std::lock_guard right(right_);
  --pinned_;
  if (--mark->pins == 0 && mark->passed) free_marks_.push_back(mark);
}

}  // namespace tenon::vm
