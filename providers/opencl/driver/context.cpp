#include "providers/opencl/driver/context.h"

#include <algorithm>
#include <vector>

#include "providers/opencl/driver/result.h"
#include "sdk/provider/error.h"
#include "sdk/provider/import.h"

namespace tenon::provider::opencl {

Context::~Context() {
  if (handle_ != nullptr) api.clReleaseContext(handle_);
}

ep_status Context::create(ep_error** error) {
  cl_int result = CL_SUCCESS;
  handle_ = api.clCreateContext(nullptr, 1, &physical.handle, nullptr, nullptr, &result);
  return done(error, "clCreateContext", result);
}

ep_status Context::share(const ep_adopt_desc& adopt, ep_error** error) {
  const ImportTerms terms{physical.name.c_str(), "context", handle_bit(EP_HANDLE_CL_CONTEXT), physical.uuid};
  const ep_status known = check_handle_type(host, adopt.handle_type, terms, error);
  if (known != EP_STATUS_OK) return known;
  const uint64_t given = adopt.handle_count == 1 ? adopt.handles[0] : 0;
  if (const ep_status status = check_handle(host, adopt.handle_type, given, terms, error); status != EP_STATUS_OK) {
    return status;
  }
  const cl_context theirs = object_of<_cl_context>(given);
  size_t bytes = 0;
  cl_int result = api.clGetContextInfo(theirs, CL_CONTEXT_DEVICES, 0, nullptr, &bytes);
  std::vector<cl_device_id> devices(bytes / sizeof(cl_device_id));
  if (result == CL_SUCCESS) result = api.clGetContextInfo(theirs, CL_CONTEXT_DEVICES, bytes, devices.data(), nullptr);
  if (result == CL_INVALID_CONTEXT) {
    return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "The given cl_context is not valid.");
  }
  if (result != CL_SUCCESS) return failed(error, "clGetContextInfo", result);
  if (std::find(devices.begin(), devices.end(), physical.handle) == devices.end()) {
    return fail(host, error, EP_STATUS_INVALID_ARGUMENT, "The cl_context has %zu devices, and %s is not one of them.",
                devices.size(), physical.name.c_str());
  }
  result = api.clRetainContext(theirs);
  if (result != CL_SUCCESS) return failed(error, "clRetainContext", result);
  handle_ = theirs;
  return EP_STATUS_OK;
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
