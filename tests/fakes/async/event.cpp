// Events: the thread that runs the stream completes the records, in their order.
#include <algorithm>
#include <chrono>
#include <utility>

#include "tests/fakes/async/device.h"

namespace tenon::fakes {
namespace {

ep_status event_create(ep_device* device, ep_event** out, ep_error**) {
  auto* event = new ep_event;
  event->host = device->host;
  event->device = device;
  *out = event;
  return EP_STATUS_OK;
}

void event_destroy(ep_device*, ep_event* event) { delete event; }

ep_status event_record(ep_event* event, ep_stream* stream, ep_error** error) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  if (is_lost()) return lost(stream->device, error);
  Command command;
  command.kind = Command::record;
  command.event = event;
  {
    std::lock_guard lock(event->mutex);
    command.point = ++event->recorded;
    event->stream = stream;
    event->timed = stream->timed;
    if (stream->timed) async_control().timed_records.fetch_add(1, std::memory_order_relaxed);
    if (async_control().shadow.load()) event->clock = stream->device->plugin->shadow.record(stream->number);
    event->recorded_now.store(event->recorded, std::memory_order_release);
  }
  stream->push(std::move(command));
  return EP_STATUS_OK;
}

void seen(ep_event* event) {
  if (!async_control().shadow.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(event->mutex);
  event->device->plugin->shadow.wait(kHostClock, event->clock);
}

ep_status never_recorded(ep_event* event, ep_error** error) {
  return fail(event->host, error, EP_STATUS_INVALID_ARGUMENT, "the event was never recorded.");
}

ep_status event_query(ep_event* event, ep_error** error) {
  const uint64_t recorded = event->recorded_now.load(std::memory_order_acquire);
  if (recorded == 0) return never_recorded(event, error);
  if (is_lost()) return lost(event->device, error);
  if (const ep_status told = async_control().query_answer; told != EP_STATUS_OK) {
    return fail(event->host, error, told, "the counter of the queue cannot be read.");
  }
  if (event->completed_now.load(std::memory_order_acquire) >= recorded) {
    seen(event);
    return EP_STATUS_OK;
  }
  event->stream->flush();
  return EP_STATUS_BUSY;
}

ep_status event_host_wait(ep_event* event, uint64_t timeout_ns, ep_error** error) {
  if (event->recorded_now.load(std::memory_order_acquire) == 0) return never_recorded(event, error);
  if (is_lost()) return lost(event->device, error);
  if (const ep_status told = async_control().host_wait_answer; told != EP_STATUS_OK) {
    return fail(event->host, error, told, "the interrupt of the queue is not there.");
  }
  if (!event->has_come()) event->stream->flush();
  {
    std::unique_lock lock(event->mutex);
    const uint64_t point = event->recorded;
    const auto fired = [&] { return event->completed >= point; };
    const auto longest = std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, uint64_t{1} << 60));
    if (!event->fired.wait_for(lock, longest, fired)) {
      if (error != nullptr) *error = nullptr;
      return EP_STATUS_TIMEOUT;
    }
  }
  seen(event);
  return EP_STATUS_OK;
}

ep_status stream_wait_event(ep_stream* stream, ep_event* event, ep_error** error) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  if (event->recorded_now.load(std::memory_order_acquire) == 0) return never_recorded(event, error);
  if (is_lost()) return lost(stream->device, error);
  async_control().device_waits.fetch_add(1, std::memory_order_relaxed);
  if (!event->has_come()) event->stream->flush();
  Command command;
  command.kind = Command::wait;
  command.event = event;
  {
    std::lock_guard lock(event->mutex);
    command.point = event->recorded;
    if (async_control().shadow.load()) stream->device->plugin->shadow.wait(stream->number, event->clock);
  }
  stream->push(std::move(command));
  return EP_STATUS_OK;
}

// When the device reached the point of `event`.
ep_status time_of(ep_event* event, uint64_t* out_ns, ep_error** error) {
  std::lock_guard lock(event->mutex);
  if (event->recorded == 0) return never_recorded(event, error);
  if (!event->timed) {
    return fail(event->host, error, EP_STATUS_INVALID_ARGUMENT, "the event was recorded on a stream without times.");
  }
  if (event->completed < event->recorded) return EP_STATUS_BUSY;
  *out_ns = event->fired_ns;
  return EP_STATUS_OK;
}

ep_status event_elapsed(ep_event* begin, ep_event* end, uint64_t* out_ns, ep_error** error) {
  if (is_lost()) return lost(begin->device, error);
  if (const ep_status told = async_control().elapsed_answer; told != EP_STATUS_OK) {
    return fail(begin->host, error, told, "the clock of the queue cannot be read.");
  }
  uint64_t from = 0, to = 0;
  if (const ep_status status = time_of(begin, &from, error); status != EP_STATUS_OK) return status;
  if (const ep_status status = time_of(end, &to, error); status != EP_STATUS_OK) return status;
  *out_ns = to > from ? to - from : 0;
  return EP_STATUS_OK;
}

}  // namespace

void fill_event(ep_device_ops* ops) {
  ops->event_create = event_create;
  ops->event_destroy = event_destroy;
  ops->event_record = event_record;
  ops->event_query = event_query;
  ops->event_host_wait = event_host_wait;
  ops->stream_wait_event = stream_wait_event;
  ops->event_elapsed = event_elapsed;
}

}  // namespace tenon::fakes
