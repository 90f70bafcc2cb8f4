// Marks: events that are made on demand and shared by all instructions of their stream up to their point. They are
// queried and waited for under the launch right.
#include <algorithm>
#include <array>
#include <string_view>
#include <thread>
#include <utility>

#include "core/vm/engine.h"
#include "core/vm/inline.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::vm {
namespace {

constexpr int kTries = 3;  // attempts to wait for a stream
constexpr std::chrono::microseconds kAskAgain{50};

// By EventCall: the host's action, for errors.
constexpr std::array<std::string_view, 5> kDoing = {"recording an event", "asking whether an event has fired",
                                                    "waiting on the host for an event", "waiting for an event",
                                                    "flushing a stream"};

std::string_view doing(EventCall call) { return kDoing[static_cast<size_t>(call)]; }

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
    wait_instead(stream, EventCall::record, code, error);
    return nullptr;
  }
  mark->stream = &stream;
  mark->point = stream.marked = stream.launched.load(std::memory_order_relaxed);
  mark->passed = false;
  stream.events.push_back(mark);
  return mark;
}

// The earliest mark after instruction `number`; makes one if there is none. Null: that instruction is known to be done,
// or the device is lost.
EventMark* DeviceQueue::event_covering(Stream& stream, uint64_t number) {
  if (stream.completed >= number || !lost_.ok()) return nullptr;
  if (stream.marked < number) return make_mark(stream);
  const auto found = std::lower_bound(stream.events.begin(), stream.events.end(), number,
                                      [](const EventMark* mark, uint64_t wanted) { return mark->point < wanted; });
  return found != stream.events.end() ? *found : make_mark(stream);
}

// Removes `mark`, which was seen, from its stream.
void DeviceQueue::pass(Stream& stream, EventMark* mark) {
  stream.events.pop_front();
  mark->passed = true;
  if (mark->pins == 0) free_marks_.push_back(mark);
}

// Checks which marks have fired, and takes the faults of the instructions before them.
bool DeviceQueue::observe(Stream& stream) {
  if (stream.on_host) return observe_host(stream);
  const uint64_t seen_before = stream.completed;
  // A mark that has fired implies all marks before it. So steps grow as long as marks have fired.
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
      wait_instead(stream, EventCall::query, code, error);
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

// Checks whether the running function of the stream has ended.
bool DeviceQueue::observe_host(Stream& stream) {
  const uint64_t done = stream.host_done.load(std::memory_order_acquire);
  if (done == stream.completed) return false;
  Slot& slot = stream.slot(done);
  if (!stream.host_status.ok()) {
    slot.status = slot_error(slot, std::exchange(stream.host_status, Status()), device_);
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

// Called when an event function failed. Such a failure concerns the call and not the device, so the host logs it and
// waits for everything launched to the stream. Only if this wait fails too, or the device reports its loss, is the
// device lost (S08 in ep_api/README.md).
void DeviceQueue::wait_instead(Stream& stream, EventCall call, ep_status code, ep_error* error) {
  const Status why = provider_error(device_, code, error, doing(call));
  if (code == EP_STATUS_DEVICE_LOST || !lost_.ok()) return lose(why);
  complain(stream, call, why);
  if (const Status waited = synchronize(stream); !waited.ok()) {
    return lose(waited.with_context("  after this failed: " + why.message()));
  }
  const uint64_t seen_before = stream.completed;
  while (!stream.events.empty()) pass(stream, stream.events.front());
  stream.completed = stream.marked = stream.launched.load(std::memory_order_relaxed);
  if (device_->ops.stream_take_fault != nullptr) take_faults(stream, seen_before);
}

// Logs the first failure of each event function per stream, in the device's words.
void DeviceQueue::complain(Stream& stream, EventCall call, const Status& why) {
  const uint32_t bit = 1u << static_cast<unsigned>(call);
  if ((stream.complaints & bit) != 0) return;
  stream.complaints |= bit;
  loader::log(
      loader::LogTopic::vm, loader::LogLevel::warning,
      fmt::format("{}\n  on stream {}; Tenon {} instead, and logs this once per stream (rule S08).", why.message(),
                  stream.index, call == EventCall::host_wait ? "asks at intervals" : "waits for the whole stream"));
}

// Called before the launch thread rests: records a mark after everything that was launched, and flushes the streams.
void DeviceQueue::mark_and_flush() {
  for (uint16_t i = 0; i < stream_count(); ++i) {
    Stream& stream = *streams_[i];
    const uint64_t launched = stream.launched.load(std::memory_order_relaxed);
    if (stream.retired.load(std::memory_order_relaxed) == launched || !lost_.ok() || stream.on_host) continue;
    if (stream.marked < launched) make_mark(stream);
    flush(stream);
  }
}

// Submits to the device what the provider has only batched so far.
void DeviceQueue::flush(Stream& stream) {
  if (device_->ops.stream_flush == nullptr || !lost_.ok()) return;
  ep_error* error = nullptr;
  const ep_status code = device_->ops.stream_flush(stream.handle, &error);
  if (code != EP_STATUS_OK) wait_instead(stream, EventCall::flush, code, error);
}

void DeviceQueue::wait_mark(EventMark* mark, uint64_t timeout_ns) {
  ep_error* error = nullptr;
  const ep_status code = device_->ops.event_host_wait(mark->handle, timeout_ns, &error);
  const Status status =
      code == EP_STATUS_OK ? Status() : provider_error(device_, code, error, doing(EventCall::host_wait));
  const bool failed = !status.ok() && code != EP_STATUS_TIMEOUT;
  {
    std::lock_guard right(right_);
    --pinned_;
    if (failed && code != EP_STATUS_DEVICE_LOST) complain(*mark->stream, EventCall::host_wait, status);
    if (failed && code == EP_STATUS_DEVICE_LOST) lose(status);
    if (--mark->pins == 0 && mark->passed) free_marks_.push_back(mark);
  }
  // The caller will ask whether the event has fired. It asks at intervals, since no thread waits for the device.
  if (failed) std::this_thread::sleep_for(kAskAgain);
}

}  // namespace tenon::vm
