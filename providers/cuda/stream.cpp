#include "providers/cuda/device.h"

namespace tenon::provider::cuda {
namespace {

ep_status stream_create(ep_device* device, const ep_stream_desc* desc, ep_stream** out_stream, ep_error** error) {
  if (const ep_status status = check_stream_flags(device->host, *desc, error); status != EP_STATUS_OK) return status;
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  ep_stream* stream = make_stream(device, nullptr, false);
  stream->timed = (desc->flags & EP_STREAM_FLAG_TIMED) != 0;
  const Current current(device);
  CUresult result = current.result();
  // Lower numbers are more urgent, and the driver clamps them.
  if (result == CUDA_SUCCESS)
    result = device->driver->stream_create(&stream->handle, CU_STREAM_NON_BLOCKING, -desc->priority);
  if (result == CUDA_SUCCESS) {
    *out_stream = stream;
    return EP_STATUS_OK;
  }
  destroy(stream);
  return driver_failed(device, result, "creating a stream", error);
}

void stream_destroy(ep_device* device, ep_stream* stream) noexcept {
  if (stream == nullptr) return;
  {
    const Current current(device);
    stream->faults->release(*device->driver);
    stream->staging.release(*device->driver);
    if (!stream->imported) device->driver->stream_destroy(stream->handle);
  }
  destroy(stream);
}

// Calls `work(driver)` in the device's context. On failure, the error says that it failed while `doing`.
template <class Work>
ep_status on_stream(ep_stream* stream, const char* doing, ep_error** error, const Work& work) {
  ep_device* device = stream->device;
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  const Current current(device);
  CUresult result = current.result();
  if (result == CUDA_SUCCESS) result = work(*device->driver);
  return result == CUDA_SUCCESS ? EP_STATUS_OK : driver_failed(device, result, doing, error);
}

ep_status stream_synchronize(ep_stream* stream, ep_error** error) {
  if (stream->records) return EP_STATUS_BUSY;
  ep_device* device = stream->device;
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  const uint64_t last = stream->faults->last();
  const Current current(device);
  CUresult result = current.result();
  if (result == CUDA_SUCCESS) result = device->driver->stream_synchronize(stream->handle);
  if (as_waited(result) != CUDA_SUCCESS) return driver_failed(device, result, "waiting for a stream", error);
  stream->faults->complete(last);
  return EP_STATUS_OK;
}

ep_status stream_take_fault(ep_stream* stream, ep_fault* out_fault, ep_error** error) {
  if (stream->records) return EP_STATUS_BUSY;
  const std::optional<ep_fault> fault = stream->faults->take();
  if (!fault) return fail_text(stream->host, error, EP_STATUS_NOT_FOUND, "No further fault is known.");
  *out_fault = *fault;
  return EP_STATUS_OK;
}

ep_status copy(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size, ep_error** error) {
  RecordableCall call(stream);
  if (stream->records && dst.memory->mapped != nullptr && src.memory->mapped != nullptr) {
    return fail_text(stream->host, error, EP_STATUS_UNSUPPORTED,
                     "The host copies within pinned memory, so a command list cannot contain such a copy.");
  }
  return call.end(on_stream(stream, "copying", error, [&](const Driver&) { return copy_on(stream, dst, src, size); }));
}

ep_status upload(ep_stream* stream, ep_buffer dst, const void* src, uint64_t size, ep_error** error) {
  if (stream->records) return EP_STATUS_BUSY;
  return on_stream(stream, "copying from the host", error, [&](const Driver& driver) {
    return stream->staging.upload(driver, stream->handle, address_of(dst), src, size);
  });
}

ep_status download(ep_stream* stream, void* dst, ep_buffer src, uint64_t size, ep_error** error) {
  if (stream->records) return EP_STATUS_BUSY;
  return on_stream(stream, "copying to the host", error, [&](const Driver& driver) {
    return stream->staging.download(driver, stream->handle, dst, address_of(src), size);
  });
}

}  // namespace

ep_stream* make_stream(ep_device* device, CUstream handle, bool imported) {
  auto faults = std::make_shared<FaultLog>();
  ep_stream* stream = make<ep_stream>(device->host);
  stream->device = device;
  stream->handle = handle;
  stream->imported = imported;
  stream->faults = std::move(faults);
  return stream;
}

CUresult copy_on(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size) {
  const Driver& driver = *stream->device->driver;
  if (dst.memory->mapped == nullptr || src.memory->mapped == nullptr) {
    return driver.memcpy_async(address_of(dst), address_of(src), size, stream->handle);
  }
  return stream->staging.copy(driver, stream->handle, static_cast<char*>(dst.memory->mapped) + dst.offset,
                              static_cast<const char*>(src.memory->mapped) + src.offset, size);
}

void fill_stream(ep_device_ops* ops) {
  ops->stream_create = entry<stream_create>;
  ops->stream_destroy = stream_destroy;
  ops->stream_synchronize = entry<stream_synchronize>;
  ops->stream_take_fault = entry<stream_take_fault>;
  ops->copy = entry<copy>;
  ops->upload = entry<upload>;
  ops->download = entry<download>;
}

}  // namespace tenon::provider::cuda
