#include "core/vm/granular.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace tenon::vm {
namespace {

// A range of bytes, cut at the multiples of the granularity: up to the first, up to the last, and the rest.
struct Cut {
  uint64_t head, body, tail;

  Cut(const DeviceState& device, uint64_t offset, uint64_t bytes) {
    const uint64_t unit = device.copy_granularity;
    head = std::min(bytes, (unit - offset % unit) % unit);
    body = (bytes - head) / unit * unit;
    tail = bytes - head - body;
  }
};

// Downloads the one multiple in which `at` lies, and waits for it.
ep_status read_multiple(const DeviceState& device, ep_stream* stream, ep_buffer at, char* out, ep_error** error) {
  const uint64_t unit = device.copy_granularity;
  const ep_status status = device.ops.download(stream, out, {at.memory, at.offset / unit * unit}, unit, error);
  return status != EP_STATUS_OK ? status : device.ops.stream_synchronize(stream, error);
}

// Downloads `bytes` that lie within one multiple.
ep_status download_within(const DeviceState& device, ep_stream* stream, char* dst, ep_buffer src, uint64_t bytes,
                          ep_error** error) {
  if (bytes == 0) return EP_STATUS_OK;
  std::vector<char> multiple(device.copy_granularity);
  const ep_status status = read_multiple(device, stream, src, multiple.data(), error);
  if (status == EP_STATUS_OK) std::memcpy(dst, &multiple[src.offset % device.copy_granularity], bytes);
  return status;
}

ep_status upload_within(const DeviceState& device, ep_stream* stream, ep_buffer dst, const char* src, uint64_t bytes,
                        ep_error** error) {
  if (bytes == 0) return EP_STATUS_OK;
  const uint64_t unit = device.copy_granularity;
  std::vector<char> multiple(unit);
  ep_status status = read_multiple(device, stream, dst, multiple.data(), error);
  if (status != EP_STATUS_OK) return status;
  std::memcpy(&multiple[dst.offset % unit], src, bytes);
  status = device.ops.upload(stream, {dst.memory, dst.offset / unit * unit}, multiple.data(), unit, error);
  return status != EP_STATUS_OK ? status : device.ops.stream_synchronize(stream, error);
}

ep_buffer past(ep_buffer buffer, uint64_t bytes) { return {buffer.memory, buffer.offset + bytes}; }

}  // namespace

ep_status upload_in_parts(const DeviceState& device, ep_stream* stream, ep_buffer dst, const void* src, uint64_t bytes,
                          ep_error** error) {
  const Cut cut(device, dst.offset, bytes);
  const char* from = static_cast<const char*>(src);
  ep_status status = upload_within(device, stream, dst, from, cut.head, error);
  if (status != EP_STATUS_OK) return status;
  if (cut.body != 0) status = device.ops.upload(stream, past(dst, cut.head), from + cut.head, cut.body, error);
  if (status != EP_STATUS_OK) return status;
  const uint64_t last = cut.head + cut.body;
  return upload_within(device, stream, past(dst, last), from + last, cut.tail, error);
}

ep_status download_in_parts(const DeviceState& device, ep_stream* stream, void* dst, ep_buffer src, uint64_t bytes,
                            ep_error** error) {
  const Cut cut(device, src.offset, bytes);
  char* to = static_cast<char*>(dst);
  ep_status status = download_within(device, stream, to, src, cut.head, error);
  if (status != EP_STATUS_OK) return status;
  if (cut.body != 0) status = device.ops.download(stream, to + cut.head, past(src, cut.head), cut.body, error);
  if (status != EP_STATUS_OK) return status;
  const uint64_t last = cut.head + cut.body;
  return download_within(device, stream, to + last, past(src, last), cut.tail, error);
}

ep_status copy_in_parts(const DeviceState& device, ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t bytes,
                        ep_error** error) {
  const uint64_t unit = device.copy_granularity;
  const bool in_step = dst.offset % unit == src.offset % unit;
  const Cut cut(device, dst.offset, bytes);
  const uint64_t direct = in_step ? cut.body : 0;
  // What the device cannot copy goes by way of the host: both ends, or everything.
  std::vector<char> before(in_step ? cut.head : bytes);
  std::vector<char> behind(in_step ? cut.tail : 0);
  ep_status status = EP_STATUS_OK;
  if (!before.empty()) status = download_in_parts(device, stream, before.data(), src, before.size(), error);
  const uint64_t last = before.size() + direct;
  if (status == EP_STATUS_OK && !behind.empty())
    status = download_in_parts(device, stream, behind.data(), past(src, last), behind.size(), error);
  if (status == EP_STATUS_OK && !before.empty()) status = device.ops.stream_synchronize(stream, error);
  if (status == EP_STATUS_OK && !before.empty())
    status = upload_in_parts(device, stream, dst, before.data(), before.size(), error);
  if (status == EP_STATUS_OK && direct != 0)
    status = device.ops.copy(stream, past(dst, before.size()), past(src, before.size()), direct, error);
  if (status == EP_STATUS_OK && !behind.empty())
    status = upload_in_parts(device, stream, past(dst, last), behind.data(), behind.size(), error);
  if (status != EP_STATUS_OK) return status;
  return before.empty() ? status : device.ops.stream_synchronize(stream, error);  // `before` ends with this call
}

}  // namespace tenon::vm
