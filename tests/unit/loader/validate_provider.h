// A provider in the test itself for the validation layer to stand before: device 0 is asynchronous, device 1
// synchronous; it keeps every rule, and a test takes out what it wants broken.
#pragma once

#include <atomic>
#include <functional>

#include "ep_api/ep_api.h"

namespace tenon::loader {

struct Toy {
  const ep_host* host = nullptr;
  std::function<void(ep_device_ops*)> change;  // before a device is given out
  std::function<void()> on_launch;             // inside primitive_launch
  std::atomic<int> calls{0};                   // of functions of the devices
  ep_primitive_info info{};                    // what primitive_create says beside the implementation
  ep_status launch_answer = EP_STATUS_OK;
  ep_fault fault{};  // what a launch or stream_take_fault gives; code 0: none
};

Toy& toy();
void reset_toy();
ep_status toy_query(const ep_host* host, ep_plugin_ops* out_ops, ep_error** error);

// What error_make of the toy's host gives.
ep_status toy_fails(ep_error** error, ep_status status);

}  // namespace tenon::loader
