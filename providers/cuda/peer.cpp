// Copies between two devices. First one device needs access to the other's blocks: a pool grants access to its blocks,
// and contexts grant access to plain blocks. Granted access is never withdrawn, because other users of the primary
// contexts may rely on it. It ends with the peer's pool and context.
#include <fmt/core.h>

#include "providers/cuda/device.h"

namespace tenon::provider::cuda {
namespace {

// The name of the device's model.
std::string name_of(const ep_device* device) {
  return fmt::format("{} (cuda:{})", device->facts.name, device->facts.index);
}

ep_status no_way(ep_device* device, const ep_device* peer, const std::string& why, ep_error** error) {
  return fail(device->host, error, EP_STATUS_UNSUPPORTED, "%s cannot reach the memory of %s: %s.",
              name_of(device).c_str(), name_of(peer).c_str(), why.c_str());
}

// Grants `device` access to blocks of `peer`. The device's context is current.
CUresult open_way(const ep_device* device, const ep_device* peer) {
  const Driver& driver = *device->driver;
  if (peer->pool != nullptr) {
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device->facts.number;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return driver.mem_pool_set_access(peer->pool, &access, 1);
  }
  const CUresult result = driver.ctx_enable_peer_access(peer->context, 0);
  return result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ? CUDA_SUCCESS : result;
}

ep_status peer_open(ep_device* device, ep_device* peer, ep_error** error) {
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  if (device->facts.number == peer->facts.number) return EP_STATUS_OK;  // the same GPU, opened twice
  const Current current(device);
  CUresult result = current.result();
  int can = 0;
  if (result == CUDA_SUCCESS) {
    result = device->driver->device_can_access_peer(&can, device->facts.number, peer->facts.number);
  }
  if (result == CUDA_SUCCESS && can == 0) return no_way(device, peer, "the driver has no direct path", error);
  if (result == CUDA_SUCCESS) result = open_way(device, peer);
  switch (result) {
    case CUDA_SUCCESS: return EP_STATUS_OK;
    case CUDA_ERROR_PEER_ACCESS_UNSUPPORTED:
    case CUDA_ERROR_TOO_MANY_PEERS:
    case CUDA_ERROR_INVALID_DEVICE:
    case CUDA_ERROR_NOT_SUPPORTED: return no_way(device, peer, device->driver->text_of(result), error);
    default: return driver_failed(device, result, fmt::format("opening access to {}", name_of(peer)).c_str(), error);
  }
}

// Pinned memory belongs to no device, so such copies are ordinary copies in the stream's context.
ep_status peer_copy(ep_stream* stream, ep_buffer dst, ep_device* peer, ep_buffer src, uint64_t size, ep_error** error) {
  if (stream->records) return EP_STATUS_BUSY;
  ep_device* device = stream->device;
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  if (peer->lost.load(std::memory_order_relaxed) != 0) {
    return fail(device->host, error, EP_STATUS_CANCELLED, "%s, the source of the copy, is lost.",
                name_of(peer).c_str());
  }
  const Current current(device);
  const Driver& driver = *device->driver;
  const bool pinned = dst.memory->mapped != nullptr || src.memory->mapped != nullptr;
  CUresult result = current.result();
  if (result == CUDA_SUCCESS) {
    result = pinned || device->context == peer->context
                 ? copy_on(stream, dst, src, size)
                 : driver.memcpy_peer_async(address_of(dst), device->context, address_of(src), peer->context, size,
                                            stream->handle);
  }
  if (result == CUDA_SUCCESS) return EP_STATUS_OK;
  return driver_failed(device, result, fmt::format("copying from {}", name_of(peer)).c_str(), error);
}

}  // namespace

void fill_peer(ep_device_ops* ops) {
  ops->peer_open = entry<peer_open>;
  ops->peer_copy = entry<peer_copy>;
}

}  // namespace tenon::provider::cuda
