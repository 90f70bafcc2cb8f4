#include <cstring>

#include "providers/cpu/device.h"

namespace tenon::provider::cpu {
namespace {

ep_status stream_create(ep_device* device, const ep_stream_desc*, ep_stream** out_stream, ep_error**) {
  *out_stream = &device->stream;
  return EP_STATUS_OK;
}

void stream_destroy(ep_device*, ep_stream*) noexcept {}

ep_status stream_synchronize(ep_stream*, ep_error**) { return EP_STATUS_OK; }

ep_status copy(ep_stream*, ep_buffer dst, ep_buffer src, uint64_t size, ep_error**) {
  std::memcpy(address_of(dst), address_of(src), size);
  return EP_STATUS_OK;
}

ep_status upload(ep_stream*, ep_buffer dst, const void* src, uint64_t size, ep_error**) {
  std::memcpy(address_of(dst), src, size);
  return EP_STATUS_OK;
}

ep_status download(ep_stream*, void* dst, ep_buffer src, uint64_t size, ep_error**) {
  std::memcpy(dst, address_of(src), size);
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
