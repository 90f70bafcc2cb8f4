// The toy: a provider inside the test program, behind the validation layer. Device 0 is asynchronous, device 1
// synchronous. The toy keeps every rule; a test replaces the function that is to break one.
#pragma once

#include <atomic>
#include <functional>

#include "ep_api/ep_api.h"

namespace tenon::loader {

struct Toy {
  const ep_host* host = nullptr;
  std::function<void(ep_device_ops*)> change;  // called before a device is handed out
  std::function<void()> on_launch;             // called inside primitive_launch
  std::atomic<int> calls{0};                   // calls of device functions
  ep_primitive_info info{};                    // filled in by primitive_create
  ep_status launch_answer = EP_STATUS_OK;
  ep_status event_answer = EP_STATUS_OK;  // what event_query and event_wait return
  ep_fault fault{};                       // fault of a launch or of stream_take_fault; code 0: none
};

Toy& toy();
void reset_toy();
ep_status toy_query(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error);

// Returns `status` with the error that error_make of the toy's host creates.
ep_status toy_fails(ep_error** error, ep_status status);

}  // namespace tenon::loader
