#include "providers/opencl/device.h"

namespace tenon::provider::opencl {
namespace {

ep_status stream_create(ep_device* device, const ep_stream_desc* desc, ep_stream** out_stream, ep_error** error) {
  if (const ep_status status = check_stream_flags(device->host, *desc, error); status != EP_STATUS_OK) return status;
  if (const ep_status status = device->context->check(error); status != EP_STATUS_OK) return status;
  auto queue = std::make_shared<CommandQueue>(device->context);
  if (const ep_status status = queue->create((desc->flags & EP_STREAM_FLAG_TIMED) != 0, error); status != EP_STATUS_OK)
    return status;
  *out_stream = make<ep_stream>(device->host, device->host, std::move(queue));
  return EP_STATUS_OK;
}

void stream_destroy(ep_device*, ep_stream* stream) noexcept { destroy(stream); }

ep_status stream_synchronize(ep_stream* stream, ep_error** error) { return stream->queue->finish(error); }

ep_status stream_flush(ep_stream* stream, ep_error** error) { return stream->queue->flush(error); }

ep_status stream_take_fault(ep_stream* stream, ep_fault* out_fault, ep_error** error) {
  if (stream->queue->faults().take(out_fault)) return EP_STATUS_OK;
  return fail_text(stream->host, error, EP_STATUS_NOT_FOUND, "There is no further fault.");
}

ep_status copy(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size, ep_error** error) {
  return stream->queue->copy(buffer_of(dst), dst.offset, buffer_of(src), src.offset, size, error);
}

ep_status upload(ep_stream* stream, ep_buffer dst, const void* src, uint64_t size, ep_error** error) {
  return stream->queue->upload(buffer_of(dst), dst.offset, src, size, error);
}

ep_status download(ep_stream* stream, void* dst, ep_buffer src, uint64_t size, ep_error** error) {
  return stream->queue->download(dst, buffer_of(src), src.offset, size, error);
}

}  // namespace

void fill_stream(ep_device_ops* ops) {
  ops->stream_create = entry<stream_create>;
  ops->stream_destroy = stream_destroy;
  ops->stream_synchronize = entry<stream_synchronize>;
  ops->stream_flush = entry<stream_flush>;
  ops->stream_take_fault = entry<stream_take_fault>;
  ops->copy = entry<copy>;
  ops->upload = entry<upload>;
  ops->download = entry<download>;
}

}  // namespace tenon::provider::opencl
