// Transfers of any number of bytes, at any offset, on a device whose pools only copy multiples of a granularity
// (copy_granularity of ep_memory_pool_info). Internal to core/vm.
//
// The provider copies the whole multiples in the middle. The bytes at each end are copied with the multiple that
// contains them: it is downloaded, changed on the host and uploaded, and the caller waits for that. Two blocks never
// share a multiple, since blocks begin at multiples of 64 bytes, and the VM allows no other access to a storage that is
// being written.
#pragma once

#include "core/device/device_state.h"

namespace tenon::vm {

inline bool whole_multiples(const DeviceState& device, uint64_t a, uint64_t b, uint64_t c = 0) {
  return ((a | b | c) & (device.copy_granularity - 1)) == 0;
}

ep_status copy_in_parts(const DeviceState& device, ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t bytes,
                        ep_error** error);
ep_status upload_in_parts(const DeviceState& device, ep_stream* stream, ep_buffer dst, const void* src, uint64_t bytes,
                          ep_error** error);
ep_status download_in_parts(const DeviceState& device, ep_stream* stream, void* dst, ep_buffer src, uint64_t bytes,
                            ep_error** error);

// Like the table's slots copy, upload and download, for any number of bytes.
inline ep_status copy_bytes(const DeviceState& device, ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t bytes,
                            ep_error** error) {
  if (!whole_multiples(device, dst.offset, src.offset, bytes)) [[unlikely]]
    return copy_in_parts(device, stream, dst, src, bytes, error);
  return device.ops.copy(stream, dst, src, bytes, error);
}

inline ep_status upload_bytes(const DeviceState& device, ep_stream* stream, ep_buffer dst, const void* src,
                              uint64_t bytes, ep_error** error) {
  if (!whole_multiples(device, dst.offset, bytes)) [[unlikely]]
    return upload_in_parts(device, stream, dst, src, bytes, error);
  return device.ops.upload(stream, dst, src, bytes, error);
}

inline ep_status download_bytes(const DeviceState& device, ep_stream* stream, void* dst, ep_buffer src, uint64_t bytes,
                                ep_error** error) {
  if (!whole_multiples(device, src.offset, bytes)) [[unlikely]]
    return download_in_parts(device, stream, dst, src, bytes, error);
  return device.ops.download(stream, dst, src, bytes, error);
}

}  // namespace tenon::vm
