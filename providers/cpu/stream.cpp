#include "providers/cpu/device.h"
#include "providers/cpu/simd/copy_bytes.h"
#include "providers/cpu/threads/lease.h"
#include "providers/cpu/threads/stop.h"

namespace tenon::provider::cpu {
namespace {

ep_status stream_create(ep_device* device, const ep_stream_desc*, ep_stream** out_stream, ep_error**) {
  *out_stream = &device->stream;
  return EP_STATUS_OK;
}

void stream_destroy(ep_device*, ep_stream*) noexcept {}

ep_status stream_synchronize(ep_stream*, ep_error**) { return EP_STATUS_OK; }

// Several threads copy, because one thread cannot use the full memory bandwidth.
void move(const ep_stream& stream, void* to, const void* from, uint64_t size) {
  begin_stoppable(stream.host);
  const auto bytes = static_cast<int64_t>(size);
  parallel(stream.threads, bytes / 16, [&](int32_t part, int32_t parts) {
    const int64_t begin = bytes / 64 * part / parts * 64;
    const int64_t end = part + 1 == parts ? bytes : bytes / 64 * (part + 1) / parts * 64;
    copy_bytes(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
               static_cast<size_t>(end - begin));
  });
}

ep_status copy(ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size, ep_error**) {
  move(*stream, address_of(dst), address_of(src), size);
  return EP_STATUS_OK;
}

ep_status upload(ep_stream* stream, ep_buffer dst, const void* src, uint64_t size, ep_error**) {
  move(*stream, address_of(dst), src, size);
  return EP_STATUS_OK;
}

ep_status download(ep_stream* stream, void* dst, ep_buffer src, uint64_t size, ep_error**) {
  move(*stream, dst, address_of(src), size);
  return EP_STATUS_OK;
}

}  // namespace

void fill_stream(ep_device_ops* ops) {
  ops->stream_create = entry<stream_create>;
  ops->stream_destroy = stream_destroy;
  ops->stream_synchronize = entry<stream_synchronize>;
  ops->copy = entry<copy>;
  ops->upload = entry<upload>;
  ops->download = entry<download>;
}

}  // namespace tenon::provider::cpu
