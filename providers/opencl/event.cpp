#include "providers/opencl/device.h"

namespace tenon::provider::opencl {
namespace {

// The event's last record. Errors: INVALID_ARGUMENT if the event was never recorded.
ep_status point_of(ep_event* event, std::shared_ptr<Point>* out_point, ep_error** error) {
  std::lock_guard lock(event->mutex);
  if (event->point == nullptr) {
    return fail_text(event->host, error, EP_STATUS_INVALID_ARGUMENT, "The event was never recorded.");
  }
  *out_point = event->point;
  return EP_STATUS_OK;
}

ep_status event_create(ep_device* device, ep_event** out_event, ep_error**) {
  *out_event = make<ep_event>(device->host);
  return EP_STATUS_OK;
}

void event_destroy(ep_device*, ep_event* event) noexcept { destroy(event); }

ep_status event_record(ep_event* event, ep_stream* stream, ep_error** error) {
  std::shared_ptr<Point> point;
  if (const ep_status status = stream->queue->record(&point, error); status != EP_STATUS_OK) return status;
  std::lock_guard lock(event->mutex);
  event->point.swap(point);
  return EP_STATUS_OK;
}

ep_status event_query(ep_event* event, ep_error** error) {
  std::shared_ptr<Point> point;
  if (const ep_status status = point_of(event, &point, error); status != EP_STATUS_OK) return status;
  return point->query(error);
}

ep_status event_host_wait(ep_event* event, uint64_t timeout_ns, ep_error** error) {
  std::shared_ptr<Point> point;
  if (const ep_status status = point_of(event, &point, error); status != EP_STATUS_OK) return status;
  return point->wait(timeout_ns, error);
}

ep_status stream_wait_event(ep_stream* stream, ep_event* event, ep_error** error) {
  std::shared_ptr<Point> point;
  if (const ep_status status = point_of(event, &point, error); status != EP_STATUS_OK) return status;
  return stream->queue->wait_for(*point, error);
}

// The event's point on a timed queue. Errors: INVALID_ARGUMENT; BUSY if the event has not fired.
ep_status timed_point_of(ep_event* event, std::shared_ptr<Point>* out_point, ep_error** error) {
  if (const ep_status status = point_of(event, out_point, error); status != EP_STATUS_OK) return status;
  if ((*out_point)->queue().timed()) return (*out_point)->ask(error);
  return fail_text(event->host, error, EP_STATUS_INVALID_ARGUMENT,
                   "The event was recorded on a stream that is not timed.");
}

ep_status event_elapsed(ep_event* begin, ep_event* end, uint64_t* out_ns, ep_error** error) {
  std::shared_ptr<Point> first, last;
  if (const ep_status status = timed_point_of(begin, &first, error); status != EP_STATUS_OK) return status;
  if (const ep_status status = timed_point_of(end, &last, error); status != EP_STATUS_OK) return status;
  uint64_t from = 0, to = 0;
  if (const ep_status status = first->time(&from, error); status != EP_STATUS_OK) return status;
  if (const ep_status status = last->time(&to, error); status != EP_STATUS_OK) return status;
  *out_ns = to > from ? to - from : 0;
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

}  // namespace tenon::provider::opencl
