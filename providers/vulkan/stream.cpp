#include <algorithm>

#include "providers/vulkan/device.h"

namespace tenon::provider::vulkan {
namespace {

using Recording = CommandStream::Recording;

ep_status stream_create(ep_device* device, const ep_stream_desc* desc, ep_stream** out_stream, ep_error** error) {
  if (const ep_status status = check_stream_flags(device->host, *desc, error); status != EP_STATUS_OK) return status;
  if (const ep_status status = device->context->check(error); status != EP_STATUS_OK) return status;
  const bool timed = (desc->flags & EP_STREAM_FLAG_TIMED) != 0 && device->context->physical->facts.timestamp_mask != 0;
  auto commands =
      std::make_shared<CommandStream>(device->context, device->staging, device->streams, device->pipelines->layout());
  if (const ep_status status = commands->create(timed, error); status != EP_STATUS_OK) return status;
  device->streams->add(commands);
  *out_stream = make<ep_stream>(device->host, device->host, std::move(commands));
  return EP_STATUS_OK;
}

void stream_destroy(ep_device*, ep_stream* stream) noexcept {
  if (stream != nullptr) stream->commands->forget_waits();
  destroy(stream);
}

ep_status stream_synchronize(ep_stream* stream, ep_error** error) {
  if (stream->commands->records()) return EP_STATUS_BUSY;
  return stream->commands->wait(stream->commands->point(), UINT64_MAX, error);
}

ep_status stream_flush(ep_stream* stream, ep_error** error) {
  if (stream->commands->records()) return EP_STATUS_BUSY;
  return stream->commands->flush(error);
}

ep_status stream_take_fault(ep_stream* stream, ep_fault* out_fault, ep_error** error) {
  if (stream->commands->records()) return EP_STATUS_BUSY;
  if (stream->commands->take_fault(out_fault) == EP_STATUS_OK) return EP_STATUS_OK;
  return fail_text(stream->host, error, EP_STATUS_NOT_FOUND, "There is no further fault.");
}

ep_status copy(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size, ep_error** error) {
  CommandStream::Call call(*stream->commands);
  return call.end(
      Recording(*stream->commands)
          .add_copy(dst.memory->block.buffer, dst.offset, src.memory->block.buffer, src.offset, size, error));
}

ep_status upload(ep_stream* stream, ep_buffer dst, const void* src, uint64_t size, ep_error** error) {
  if (stream->commands->records()) return EP_STATUS_BUSY;
  for (uint64_t done = 0; done < size;) {
    const uint64_t piece = std::min(size - done, Staging::largest_piece);
    if (const ep_status status = stream->commands->make_room(error); status != EP_STATUS_OK) return status;
    const ep_status status = Recording(*stream->commands)
                                 .add_upload(dst.memory->block.buffer, dst.offset + done,
                                             static_cast<const char*>(src) + done, piece, error);
    if (status != EP_STATUS_OK) return status;
    done += piece;
  }
  return EP_STATUS_OK;
}

ep_status download(ep_stream* stream, void* dst, ep_buffer src, uint64_t size, ep_error** error) {
  if (stream->commands->records()) return EP_STATUS_BUSY;
  for (uint64_t done = 0; done < size;) {
    const uint64_t piece = std::min(size - done, Staging::largest_piece);
    if (const ep_status status = stream->commands->make_room(error); status != EP_STATUS_OK) return status;
    const ep_status status =
        Recording(*stream->commands)
            .add_download(static_cast<char*>(dst) + done, src.memory->block.buffer, src.offset + done, piece, error);
    if (status != EP_STATUS_OK) return status;
    done += piece;
  }
  return EP_STATUS_OK;
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

}  // namespace tenon::provider::vulkan
