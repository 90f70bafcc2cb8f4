#include "providers/cuda/device.h"
#include "sdk/provider/polling.h"

namespace tenon::provider::cuda {
namespace {

ep_status event_create(ep_device* device, ep_event** out_event, ep_error** error) {
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  ep_event* event = make<ep_event>(device->host);
  event->device = device;
  const Current current(device);
  CUresult result = current.result();
  if (result == CUDA_SUCCESS) {
    result = device->driver->event_create(&event->handle, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC);
  }
  if (result == CUDA_SUCCESS) {
    *out_event = event;
    return EP_STATUS_OK;
  }
  destroy(event);
  return driver_failed(device, result, "creating an event", error);
}

void event_destroy(ep_device* device, ep_event* event) noexcept {
  if (event == nullptr) return;
  {
    const Current current(device);
    device->driver->event_destroy(event->handle);
    if (event->clock != nullptr) device->driver->event_destroy(event->clock);
  }
  destroy(event);
}

// Records the event that measures time, before the one that others wait for.
CUresult record_clock(const Driver& driver, ep_event* event, const ep_stream* stream) {
  if (event->clock == nullptr) {
    const CUresult made = driver.event_create(&event->clock, CU_EVENT_DEFAULT);
    if (made != CUDA_SUCCESS) return made;
  }
  return driver.event_record(event->clock, stream->handle);
}

ep_status event_record(ep_event* event, ep_stream* stream, ep_error** error) {
  if (stream->records) return EP_STATUS_BUSY;
  ep_device* device = event->device;
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  const Current current(device);
  CUresult result = current.result();
  const uint64_t sequence = stream->faults->last();
  const std::lock_guard lock(event->mutex);
  if (result == CUDA_SUCCESS && stream->timed) result = record_clock(*device->driver, event, stream);
  if (result == CUDA_SUCCESS) result = device->driver->event_record(event->handle, stream->handle);
  if (result != CUDA_SUCCESS) return driver_failed(device, result, "recording an event", error);
  event->faults = stream->faults;
  event->fault_sequence = sequence;
  event->timed = stream->timed;
  return EP_STATUS_OK;
}

// The state of the event's last record. CUDA reports an event that was never recorded as fired.
struct Point {
  std::shared_ptr<FaultLog> faults;
  uint64_t sequence = 0;
};

Point point_of(ep_event* event) {
  const std::lock_guard lock(event->mutex);
  return {event->faults, event->fault_sequence};
}

ep_status never_recorded(ep_event* event, ep_error** error) {
  return fail_text(event->host, error, EP_STATUS_INVALID_ARGUMENT, "The event was never recorded.");
}

// EP_STATUS_OK if the event has fired; BUSY if not, with `error` unchanged.
ep_status ask(ep_event* event, const Point& point, ep_error** error) {
  ep_device* device = event->device;
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  const Current current(device);
  CUresult result = current.result();
  if (result == CUDA_SUCCESS) result = device->driver->event_query(event->handle);
  result = as_waited(result);
  if (result == CUDA_ERROR_NOT_READY) return EP_STATUS_BUSY;
  if (result != CUDA_SUCCESS) return driver_failed(device, result, "asking whether an event has fired", error);
  point.faults->complete(point.sequence);
  return EP_STATUS_OK;
}

ep_status event_query(ep_event* event, ep_error** error) {
  const Point point = point_of(event);
  return point.faults == nullptr ? never_recorded(event, error) : ask(event, point, error);
}

ep_status wait_for_ever(ep_event* event, const Point& point, ep_error** error) {
  ep_device* device = event->device;
  {
    const Current current(device);
    CUresult result = current.result();
    if (result == CUDA_SUCCESS) result = device->driver->event_synchronize(event->handle);
    result = as_waited(result);
    if (result != CUDA_SUCCESS) return driver_failed(device, result, "waiting for an event", error);
  }
  point.faults->complete(point.sequence);
  return EP_STATUS_OK;
}

// The driver has no wait with a time limit, and it wakes threads late, so even a wait without limit polls first.
ep_status event_host_wait(ep_event* event, uint64_t timeout_ns, ep_error** error) {
  const Point point = point_of(event);
  if (point.faults == nullptr) return never_recorded(event, error);
  constexpr uint64_t for_ever = uint64_t{1} << 62;
  const bool limited = timeout_ns < for_ever;
  const ep_status status = poll_until(
      limited ? timeout_ns : eager_pace.in_a_row_ns, [&] { return ask(event, point, error); }, eager_pace);
  if (status != EP_STATUS_TIMEOUT) return status;
  if (!limited) return wait_for_ever(event, point, error);
  return fail(event->host, error, EP_STATUS_TIMEOUT, "The event has not fired within %llu ns.",
              static_cast<unsigned long long>(timeout_ns));
}

ep_status stream_wait_event(ep_stream* stream, ep_event* event, ep_error** error) {
  if (stream->records) return EP_STATUS_BUSY;
  if (point_of(event).faults == nullptr) return never_recorded(event, error);
  ep_device* device = stream->device;
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  const Current current(device);
  CUresult result = current.result();
  if (result == CUDA_SUCCESS) result = device->driver->stream_wait_event(stream->handle, event->handle, 0);
  return result == CUDA_SUCCESS ? EP_STATUS_OK
                                : driver_failed(device, result, "making a stream wait for an event", error);
}

ep_status event_elapsed(ep_event* begin, ep_event* end, uint64_t* out_ns, ep_error** error) {
  ep_device* device = begin->device;
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  for (ep_event* event : {begin, end}) {
    if (point_of(event).faults == nullptr) return never_recorded(event, error);
    const std::lock_guard lock(event->mutex);
    if (event->timed) continue;
    return fail_text(event->host, error, EP_STATUS_INVALID_ARGUMENT,
                     "The event was recorded on a stream that is not timed.");
  }
  const Current current(device);
  CUresult result = current.result();
  float milliseconds = 0;
  if (result == CUDA_SUCCESS) result = device->driver->event_elapsed_time(&milliseconds, begin->clock, end->clock);
  if (result == CUDA_ERROR_NOT_READY) return EP_STATUS_BUSY;
  if (result != CUDA_SUCCESS) return driver_failed(device, result, "asking for the time between events", error);
  *out_ns = milliseconds > 0 ? static_cast<uint64_t>(static_cast<double>(milliseconds) * 1e6) : 0;
  return EP_STATUS_OK;
}

}  // namespace

void fill_event(ep_device_ops* ops) {
  ops->event_create = entry<event_create>;
  ops->event_destroy = event_destroy;
  ops->event_record = entry<event_record>;
  ops->event_query = entry<event_query>;
  ops->event_host_wait = entry<event_host_wait>;
  ops->stream_wait_event = entry<stream_wait_event>;
  ops->event_elapsed = entry<event_elapsed>;
}

}  // namespace tenon::provider::cuda
