#include "providers/opencl/queue/command_queue.h"

#include "sdk/provider/error.h"
#include "sdk/provider/polling.h"

namespace tenon::provider::opencl {

Point::~Point() { queue_->context().api.clReleaseEvent(event_); }

ep_status Point::ask(ep_error** error) const {
  Context& context = queue_->context();
  cl_int state = CL_QUEUED;
  const cl_int result =
      context.api.clGetEventInfo(event_, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr);
  if (result != CL_SUCCESS) return context.failed(error, "clGetEventInfo", result);
  if (state < 0) return context.failed(error, "A command", CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
  if (state != CL_COMPLETE) return EP_STATUS_BUSY;
  // The event's state alone does not make the device's writes visible.
  return context.done(error, "clWaitForEvents", context.api.clWaitForEvents(1, &event_));
}

ep_status Point::query(ep_error** error) const {
  if (const ep_status status = queue_->context().check(error); status != EP_STATUS_OK) return status;
  if (const ep_status status = queue_->flush(error); status != EP_STATUS_OK) return status;
  return ask(error);
}

// OpenCL has no wait with a time limit, so such a wait polls.
ep_status Point::wait(uint64_t timeout_ns, ep_error** error) const {
  Context& context = queue_->context();
  if (timeout_ns == UINT64_MAX) {
    if (const ep_status status = context.check(error); status != EP_STATUS_OK) return status;
    if (const ep_status status = queue_->flush(error); status != EP_STATUS_OK) return status;
    return context.done(error, "clWaitForEvents", context.api.clWaitForEvents(1, &event_));
  }
  if (const ep_status status = query(error); status != EP_STATUS_BUSY) return status;
  const ep_status status = poll_until(timeout_ns, [&] { return ask(error); });
  if (status != EP_STATUS_TIMEOUT) return status;
  return fail(context.host, error, EP_STATUS_TIMEOUT, "The event has not fired within %llu ns.",
              static_cast<unsigned long long>(timeout_ns));
}

ep_status Point::time(uint64_t* out_ns, ep_error** error) const {
  Context& context = queue_->context();
  cl_ulong time = 0;
  const cl_int result =
      context.api.clGetEventProfilingInfo(event_, CL_PROFILING_COMMAND_END, sizeof time, &time, nullptr);
  if (result == CL_PROFILING_INFO_NOT_AVAILABLE) {
    return fail(context.host, error, EP_STATUS_UNSUPPORTED, "The driver does not record the times of markers.");
  }
  if (result != CL_SUCCESS) return context.failed(error, "clGetEventProfilingInfo", result);
  *out_ns = time;
  return EP_STATUS_OK;
}

CommandQueue::~CommandQueue() {
  faults_.reset();
  if (handle_ != nullptr) context_->api.clReleaseCommandQueue(handle_);
}

ep_status CommandQueue::create(bool timed, ep_error** error) {
  cl_int result = CL_SUCCESS;
  timed_ = timed;
  handle_ = context_->api.clCreateCommandQueue(context_->handle(), context_->physical.handle,
                                               timed ? CL_QUEUE_PROFILING_ENABLE : 0, &result);
  if (result != CL_SUCCESS) return context_->failed(error, "clCreateCommandQueue", result);
  faults_ = std::make_unique<FaultLog>(context_, handle_);
  return EP_STATUS_OK;
}

ep_status CommandQueue::share(cl_command_queue theirs, ep_error** error) {
  const cl_int result = context_->api.clRetainCommandQueue(theirs);
  if (result != CL_SUCCESS) return context_->failed(error, "clRetainCommandQueue", result);
  handle_ = theirs;
  faults_ = std::make_unique<FaultLog>(context_, handle_);
  return EP_STATUS_OK;
}

ep_status CommandQueue::copy(cl_mem dst, uint64_t dst_offset, cl_mem src, uint64_t src_offset, uint64_t size,
                             ep_error** error) {
  if (const ep_status status = context_->check(error); status != EP_STATUS_OK) return status;
  return context_->done(
      error, "clEnqueueCopyBuffer",
      context_->api.clEnqueueCopyBuffer(handle_, src, dst, src_offset, dst_offset, size, 0, nullptr, nullptr));
}

ep_status CommandQueue::upload(cl_mem dst, uint64_t offset, const void* src, uint64_t size, ep_error** error) {
  if (const ep_status status = context_->check(error); status != EP_STATUS_OK) return status;
  return context_->done(
      error, "clEnqueueWriteBuffer",
      context_->api.clEnqueueWriteBuffer(handle_, dst, CL_FALSE, offset, size, src, 0, nullptr, nullptr));
}

ep_status CommandQueue::download(void* dst, cl_mem src, uint64_t offset, uint64_t size, ep_error** error) {
  if (const ep_status status = context_->check(error); status != EP_STATUS_OK) return status;
  return context_->done(
      error, "clEnqueueReadBuffer",
      context_->api.clEnqueueReadBuffer(handle_, src, CL_FALSE, offset, size, dst, 0, nullptr, nullptr));
}

ep_status CommandQueue::launch_bytes(const Dispatch& dispatch, std::initializer_list<cl_mem> buffers,
                                     const void* parameters, uint64_t size, ep_error** error) {
  constexpr size_t most_buffers = 10;
  Argument arguments[most_buffers + 1];
  size_t count = 0;
  for (const cl_mem& buffer : buffers) arguments[count++] = {sizeof buffer, &buffer};
  arguments[count++] = {size, parameters};
  const size_t global[3] = {dispatch.groups * dispatch.group_size, 1, 1};
  return launch_grid(*dispatch.kernel, {arguments, count}, global, {dispatch.group_size, 1, 1}, error);
}

ep_status CommandQueue::launch_grid(const Kernel& kernel, std::span<const Argument> arguments,
                                    const size_t (&global)[3], const size_t (&local)[3], ep_error** error) {
  if (const ep_status status = context_->check(error); status != EP_STATUS_OK) return status;
  const Api& api = context_->api;
  // A cl_kernel holds its arguments, and two streams may launch one primitive, so both steps are done under a lock.
  std::lock_guard lock(kernel.mutex());
  for (cl_uint number = 0; number < arguments.size(); ++number) {
    const cl_int result = api.clSetKernelArg(kernel.handle(), number, arguments[number].size, arguments[number].value);
    if (result != CL_SUCCESS) return context_->failed(error, "clSetKernelArg", result);
  }
  const cl_uint axes = global[2] > 1 ? 3 : global[1] > 1 ? 2 : 1;
  const cl_int result =
      api.clEnqueueNDRangeKernel(handle_, kernel.handle(), axes, nullptr, global, local, 0, nullptr, nullptr);
  return context_->done(error, "clEnqueueNDRangeKernel", result);
}

ep_status CommandQueue::record(std::shared_ptr<Point>* out_point, ep_error** error) {
  if (const ep_status status = context_->check(error); status != EP_STATUS_OK) return status;
  if (const ep_status status = faults_->collect(error); status != EP_STATUS_OK) return status;
  cl_event event = nullptr;
  const cl_int result = context_->api.clEnqueueMarkerWithWaitList(handle_, 0, nullptr, &event);
  if (result != CL_SUCCESS) return context_->failed(error, "clEnqueueMarkerWithWaitList", result);
  *out_point = std::make_shared<Point>(shared_from_this(), event);
  return EP_STATUS_OK;
}

ep_status CommandQueue::wait_for(const Point& point, ep_error** error) {
  if (const ep_status status = context_->check(error); status != EP_STATUS_OK) return status;
  if (const ep_status status = point.queue().flush(error); status != EP_STATUS_OK) return status;
  if (&point.queue() == this) return EP_STATUS_OK;  // the queue is in order
  return wait_for_event(point.event(), error);
}

ep_status CommandQueue::wait_for_event(cl_event event, ep_error** error) {
  if (const ep_status status = context_->check(error); status != EP_STATUS_OK) return status;
  return context_->done(error, "clEnqueueBarrierWithWaitList",
                        context_->api.clEnqueueBarrierWithWaitList(handle_, 1, &event, nullptr));
}

ep_status CommandQueue::flush(ep_error** error) {
  return context_->done(error, "clFlush", context_->api.clFlush(handle_));
}

ep_status CommandQueue::finish(ep_error** error) {
  if (const ep_status status = context_->check(error); status != EP_STATUS_OK) return status;
  std::shared_ptr<Point> point;
  if (const ep_status status = record(&point, error); status != EP_STATUS_OK) return status;
  return point->wait(UINT64_MAX, error);
}

}  // namespace tenon::provider::opencl
