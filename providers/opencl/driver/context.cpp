#include "providers/opencl/driver/context.h"

#include "providers/opencl/driver/result.h"
#include "sdk/provider/error.h"

namespace tenon::provider::opencl {

Context::~Context() {
  if (handle_ != nullptr) api.clReleaseContext(handle_);
}

ep_status Context::create(ep_error** error) {
  cl_int result = CL_SUCCESS;
  handle_ = api.clCreateContext(nullptr, 1, &physical.handle, nullptr, nullptr, &result);
  return done(error, "clCreateContext", result);
}

ep_status Context::check(ep_error** error) const {
  if (!lost_.load(std::memory_order_relaxed)) return EP_STATUS_OK;
  return fail(host, error, EP_STATUS_DEVICE_LOST, "A command failed on %s earlier, so the device is lost.",
              physical.name.c_str());
}

ep_status Context::failed(ep_error** error, const char* call, cl_int result) {
  const ep_status status = status_of(result);
  if (status == EP_STATUS_DEVICE_LOST) lost_.store(true, std::memory_order_relaxed);
  return fail(host, error, status, "%s answered %s (%d) on %s.", call, result_name(result), result,
              physical.name.c_str());
}

}  // namespace tenon::provider::opencl
