#include "providers/vulkan/device.h"

namespace tenon::provider::vulkan {
namespace {

struct Point {
  std::shared_ptr<CommandStream> commands;
  uint64_t value;
  std::shared_ptr<Timestamps::Place> time;
};

// The event's last record. Errors: INVALID_ARGUMENT if the event was never recorded.
ep_status point_of(ep_event* event, Point* out_point, ep_error** error) {
  std::lock_guard lock(event->mutex);
  if (event->commands == nullptr) {
    return fail_text(event->host, error, EP_STATUS_INVALID_ARGUMENT, "The event was never recorded.");
  }
  *out_point = {event->commands, event->value, event->time};
  return EP_STATUS_OK;
}

ep_status event_create(ep_device* device, ep_event** out_event, ep_error**) {
  *out_event = make<ep_event>(device->host);
  return EP_STATUS_OK;
}

void event_destroy(ep_device*, ep_event* event) noexcept { destroy(event); }

ep_status event_record(ep_event* event, ep_stream* stream, ep_error** error) {
  if (stream->commands->records()) return EP_STATUS_BUSY;
  if (const ep_status status = stream->commands->check(error); status != EP_STATUS_OK) return status;
  std::shared_ptr<Timestamps::Place> time;
  uint64_t value = 0;
  if (stream->commands->timed()) {
    if (const ep_status status = stream->commands->timed_point(&value, &time, error); status != EP_STATUS_OK) {
      return status;
    }
  } else {
    value = stream->commands->point();
  }
  std::lock_guard lock(event->mutex);
  event->commands = stream->commands;
  event->value = value;
  event->time.swap(time);
  return EP_STATUS_OK;
}

ep_status event_query(ep_event* event, ep_error** error) {
  Point point;
  if (const ep_status status = point_of(event, &point, error); status != EP_STATUS_OK) return status;
  return point.commands->query(point.value, error);
}

ep_status event_host_wait(ep_event* event, uint64_t timeout_ns, ep_error** error) {
  Point point;
  if (const ep_status status = point_of(event, &point, error); status != EP_STATUS_OK) return status;
  return point.commands->wait(point.value, timeout_ns, error);
}

ep_status stream_wait_event(ep_stream* stream, ep_event* event, ep_error** error) {
  if (stream->commands->records()) return EP_STATUS_BUSY;
  Point point;
  if (const ep_status status = point_of(event, &point, error); status != EP_STATUS_OK) return status;
  return stream->commands->wait_for(*point.commands, point.value, error);
}

// The device's clock ticks at the event. Errors: INVALID_ARGUMENT; BUSY if the event has not fired.
ep_status ticks_of(ep_event* event, uint64_t* out_ticks, ep_error** error) {
  Point point;
  if (const ep_status status = point_of(event, &point, error); status != EP_STATUS_OK) return status;
  if (point.time == nullptr) {
    return fail_text(event->host, error, EP_STATUS_INVALID_ARGUMENT,
                     "The event was recorded on a stream that is not timed.");
  }
  if (const ep_status status = point.commands->query(point.value, error); status != EP_STATUS_OK) return status;
  const VkResult result = point.time->read(out_ticks);
  return result == VK_SUCCESS ? EP_STATUS_OK : point.commands->context().failed(error, "vkGetQueryPoolResults", result);
}

ep_status event_elapsed(ep_event* begin, ep_event* end, uint64_t* out_ns, ep_error** error) {
  uint64_t from = 0, to = 0;
  if (const ep_status status = ticks_of(begin, &from, error); status != EP_STATUS_OK) return status;
  if (const ep_status status = ticks_of(end, &to, error); status != EP_STATUS_OK) return status;
  const PhysicalFacts& facts = begin->commands->context().physical->facts;
  const uint64_t ticks = (to - from) & facts.timestamp_mask;
  *out_ns = static_cast<uint64_t>(static_cast<double>(ticks) * facts.properties.limits.timestampPeriod);
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

}  // namespace tenon::provider::vulkan
