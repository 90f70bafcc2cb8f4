#include "core/vm/granular.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

namespace tenon::vm {
namespace {

// A range of bytes, cut at the multiples of the granularity: up to the first, up to the last, and the rest.
struct Cut {
  uint64_t head, body, tail;

  Cut(uint64_t unit, uint64_t offset, uint64_t bytes) {
    head = std::min(bytes, (unit - offset % unit) % unit);
    body = (bytes - head) / unit * unit;
    tail = bytes - head - body;
  }
};

ep_buffer past(ep_buffer buffer, uint64_t bytes) { return {buffer.memory, buffer.offset + bytes}; }

// One transfer in parts. Its members live until the parts have ended.
class Parts {
 public:
  Parts(const DeviceState& device, ep_stream* stream, ep_error** error)
      : ops_(device.ops), unit_(device.copy_granularity), stream_(stream), error_(error) {}

  ep_status upload(ep_buffer dst, const char* src, uint64_t bytes) {
    const Cut cut(unit_, dst.offset, bytes);
    ep_status status = upload_within(dst, src, cut.head);
    if (status == EP_STATUS_OK && cut.body != 0)
      status = ops_.upload(stream_, past(dst, cut.head), src + cut.head, cut.body, error_);
    if (status != EP_STATUS_OK) return status;
    const uint64_t last = cut.head + cut.body;
    return upload_within(past(dst, last), src + last, cut.tail);
  }

  ep_status download(char* dst, ep_buffer src, uint64_t bytes) {
    const Cut cut(unit_, src.offset, bytes);
    ep_status status = download_within(dst, src, cut.head);
    if (status == EP_STATUS_OK && cut.body != 0)
      status = ops_.download(stream_, dst + cut.head, past(src, cut.head), cut.body, error_);
    if (status != EP_STATUS_OK) return status;
    const uint64_t last = cut.head + cut.body;
    return download_within(dst + last, past(src, last), cut.tail);
  }

  // Ranges that the device cannot copy are copied through the host: both ends, or all bytes.
  ep_status copy(ep_buffer dst, ep_buffer src, uint64_t bytes) {
    if (dst.offset % unit_ != src.offset % unit_) return copy_by_host(dst, src, bytes);
    const Cut cut(unit_, dst.offset, bytes);
    ep_status status = copy_by_host(dst, src, cut.head);
    if (status == EP_STATUS_OK && cut.body != 0)
      status = ops_.copy(stream_, past(dst, cut.head), past(src, cut.head), cut.body, error_);
    if (status != EP_STATUS_OK) return status;
    const uint64_t last = cut.head + cut.body;
    return copy_by_host(past(dst, last), past(src, last), cut.tail);
  }

  // By the contract, a failed call has submitted nothing, so its caller frees the memory. Here parts may have been
  // submitted, so wait for them first.
  ep_status ended(ep_status status) const {
    if (status != EP_STATUS_OK) static_cast<void>(ops_.stream_synchronize(stream_, nullptr));
    return status;
  }

 private:
  char* hold(uint64_t bytes) { return held_.emplace_back(bytes).data(); }

  // Downloads the one multiple that contains `at`, and waits for it.
  ep_status read_multiple(ep_buffer at, char* out) {
    const ep_status status = ops_.download(stream_, out, {at.memory, at.offset / unit_ * unit_}, unit_, error_);
    return status != EP_STATUS_OK ? status : ops_.stream_synchronize(stream_, error_);
  }

  // Downloads `bytes` that lie within one multiple.
  ep_status download_within(char* dst, ep_buffer src, uint64_t bytes) {
    if (bytes == 0) return EP_STATUS_OK;
    char* multiple = hold(unit_);
    const ep_status status = read_multiple(src, multiple);
    if (status == EP_STATUS_OK) std::memcpy(dst, multiple + src.offset % unit_, bytes);
    return status;
  }

  ep_status upload_within(ep_buffer dst, const char* src, uint64_t bytes) {
    if (bytes == 0) return EP_STATUS_OK;
    char* multiple = hold(unit_);
    ep_status status = read_multiple(dst, multiple);
    if (status != EP_STATUS_OK) return status;
    std::memcpy(multiple + dst.offset % unit_, src, bytes);
    status = ops_.upload(stream_, {dst.memory, dst.offset / unit_ * unit_}, multiple, unit_, error_);
    return status != EP_STATUS_OK ? status : ops_.stream_synchronize(stream_, error_);
  }

  ep_status copy_by_host(ep_buffer dst, ep_buffer src, uint64_t bytes) {
    if (bytes == 0) return EP_STATUS_OK;
    char* here = hold(bytes);
    ep_status status = download(here, src, bytes);
    if (status == EP_STATUS_OK) status = ops_.stream_synchronize(stream_, error_);
    if (status == EP_STATUS_OK) status = upload(dst, here, bytes);
    return status != EP_STATUS_OK ? status : ops_.stream_synchronize(stream_, error_);
  }

  const ep_device_ops& ops_;
  const uint64_t unit_;
  ep_stream* stream_;
  ep_error** error_;
  std::deque<std::vector<char>> held_;
};

}  // namespace

ep_status upload_in_parts(const DeviceState& device, ep_stream* stream, ep_buffer dst, const void* src, uint64_t bytes,
                          ep_error** error) {
  Parts parts(device, stream, error);
  return parts.ended(parts.upload(dst, static_cast<const char*>(src), bytes));
}

ep_status download_in_parts(const DeviceState& device, ep_stream* stream, void* dst, ep_buffer src, uint64_t bytes,
                            ep_error** error) {
  Parts parts(device, stream, error);
  return parts.ended(parts.download(static_cast<char*>(dst), src, bytes));
}

ep_status copy_in_parts(const DeviceState& device, ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t bytes,
                        ep_error** error) {
  Parts parts(device, stream, error);
  return parts.ended(parts.copy(dst, src, bytes));
}

}  // namespace tenon::vm
