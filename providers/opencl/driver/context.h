// Context: an opened device, shared by all files of the provider.
#pragma once

#include <atomic>

#include "ep_api/ep_api.h"
#include "providers/opencl/driver/describe.h"

namespace tenon::provider::opencl {

// Keeps the cl_context. Owner: the device and everything made from it, by shared_ptr. Threads: any.
class Context {
 public:
  Context(const ep_host* host, const Api& api, const PhysicalDevice& physical)
      : host(host), api(api), physical(physical) {}
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  ep_status create(ep_error** error);
  // Retains the application's context in `adopt`. Errors: INVALID_ARGUMENT if the device is not in it.
  ep_status share(const ep_adopt_desc& adopt, ep_error** error);
  cl_context handle() const { return handle_; }

  // Errors: DEVICE_LOST once a command has failed on the device.
  ep_status check(ep_error** error) const;
  // The error of an OpenCL call. Marks the device as lost if the result means that.
  ep_status failed(ep_error** error, const char* call, cl_int result);
  ep_status done(ep_error** error, const char* call, cl_int result) {
    return result == CL_SUCCESS ? EP_STATUS_OK : failed(error, call, result);
  }

  const ep_host* const host;
  const Api& api;
  const PhysicalDevice& physical;

 private:
  cl_context handle_ = nullptr;
  std::atomic<bool> lost_{false};
};

}  // namespace tenon::provider::opencl
