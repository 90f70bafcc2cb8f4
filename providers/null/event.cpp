#include "providers/null/device.h"

namespace tenon::provider::null {
namespace {

ep_status event_create(ep_device* device, ep_event** out_event, ep_error**) {
  *out_event = make<ep_event>(device->host);
  return EP_STATUS_OK;
}

void event_destroy(ep_device*, ep_event* event) noexcept { destroy(event); }

ep_status event_record(ep_event* event, ep_stream*, ep_error**) {
  event->recorded = true;
  return EP_STATUS_OK;
}

// Work completes before the submitting call returns, so every recorded event has fired.
ep_status event_query(ep_event* event, ep_error** error) {
  if (event->recorded) return EP_STATUS_OK;
  return fail_text(event->host, error, EP_STATUS_INVALID_ARGUMENT, "The event was never recorded.");
}

ep_status event_host_wait(ep_event* event, uint64_t, ep_error** error) { return event_query(event, error); }

ep_status stream_wait_event(ep_stream*, ep_event* event, ep_error** error) { return event_query(event, error); }

}  // namespace

void fill_event(ep_device_ops* ops) {
  ops->event_create = entry<event_create>;
  ops->event_destroy = event_destroy;
  ops->event_record = entry<event_record>;
  ops->event_query = entry<event_query>;
  ops->event_host_wait = entry<event_host_wait>;
  ops->stream_wait_event = entry<stream_wait_event>;
}

}  // namespace tenon::provider::null
