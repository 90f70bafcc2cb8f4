// Transfers: host to device, device to host, and between any two devices. Peers copy straight from one
// to the other (peers.h). If the host can reach the memory of one of two devices, the engine of the other device moves
// the bytes in one go. Otherwise the bytes go through host memory, chunk by chunk.
#include <algorithm>
#include <cstring>

#include "core/device/process.h"
#include "core/device/trace.h"
#include "core/vm/engine.h"
#include "core/vm/granular.h"
#include "core/vm/inline.h"
#include "core/vm/peers.h"
#include "primitives/text/format.h"

namespace tenon::vm {
namespace {

constexpr uint64_t kSmallUpload = 64 * 1024;  // up to this size plain memory is as fast as pinned memory
constexpr uint64_t kChunk = StagingPool::kLargest;

Operand part_of(const Operand& operand, uint64_t begin) {
  Operand part = operand;
  part.offset += begin;
  return part;
}

// --- within one asynchronous device ---

Status submit_copy(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits) {
  DeviceState* device = dst.storage->device;
  TENON_RETURN_IF_ERROR(check_stream(device, current_stream(device)));
  const Operand operands[] = {dst, src};
  Request request;
  request.policy = Policy::copy;
  request.stream = &device->queue->stream(current_stream(device));
  request.op = &kCopy;
  request.operands = operands;
  request.waits = waits;
  request.bytes = bytes;
  return submit_and_follow(request, false);
}

// --- between two devices ---

Status copy_error(ep_status code, ep_error* error, const DeviceState* to, const DeviceState* from, uint64_t bytes) {
  if (code == EP_STATUS_OK) return Status();
  return loader::take_error(
      code, error, fmt::format("copying {} bytes from {} to {}", bytes, from->opened->spelling, to->opened->spelling));
}

// `device` is about to read `storage`, which lies on another device. Its provider may read at the call instead of in
// stream order, so downloads of `device` into this memory must be done first. (The VM waits for writes of other devices
// anyway.)
Status wait_for_downloads(const DeviceState* device, const Storage* storage) {
  const Ticket write{storage->last_write.load(std::memory_order_acquire)};
  if (!write || engine().stream(write).queue != device->queue) return Status();
  return wait(write);
}

// The destination's device reads the memory of the source.
Status copy_from_peer(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits) {
  DeviceState* to = dst.storage->device;
  DeviceState* from = src.storage->device;
  if (!to->synchronous) {
    TENON_RETURN_IF_ERROR(wait_for_downloads(to, src.storage));
    const Operand operands[] = {dst, src};
    Request request;
    request.policy = Policy::peer_copy;
    request.stream = &to->queue->upload_stream();
    request.op = &kCopy;
    request.operands = operands;
    request.waits = waits;
    request.bytes = bytes;
    request.peer = from->handle;
    return submit_and_follow(request, false);
  }
  TENON_RETURN_IF_ERROR(settle_operand(src));
  TENON_RETURN_IF_ERROR(settle_operand(dst));
  ep_error* error = nullptr;
  const ep_status code = to->ops.peer_copy(to->inline_stream, dst.storage->block.at(dst.offset), from->handle,
                                           src.storage->block.at(src.offset), bytes, &error);
  return copy_error(code, error, to, from, bytes);
}

// --- between two devices, one of which has memory the host can reach ---

// The source's device writes into the memory of the destination.
Status download_into(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits) {
  DeviceState* from = src.storage->device;
  char* host = dst.storage->block.host + dst.offset;
  if (!from->synchronous) {
    const Operand operands[] = {src, dst};
    return submit_and_follow(download_request(operands, host, bytes, waits), false);
  }
  TENON_RETURN_IF_ERROR(settle_operand(src));
  TENON_RETURN_IF_ERROR(settle_operand(dst));
  ep_error* error = nullptr;
  const ep_status code =
      download_bytes(*from, from->inline_stream, host, src.storage->block.at(src.offset), bytes, &error);
  return copy_error(code, error, dst.storage->device, from, bytes);
}

// The destination's device uploads from the memory of the source.
Status upload_from(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits) {
  DeviceState* to = dst.storage->device;
  const char* host = src.storage->block.host + src.offset;
  if (!to->synchronous) {
    TENON_RETURN_IF_ERROR(wait_for_downloads(to, src.storage));
    const Operand operands[] = {dst, src};
    return submit_and_follow(upload_request(operands, host, bytes, waits), false);
  }
  TENON_RETURN_IF_ERROR(settle_operand(src));
  TENON_RETURN_IF_ERROR(settle_operand(dst));
  ep_error* error = nullptr;
  const ep_status code = upload_bytes(*to, to->inline_stream, dst.storage->block.at(dst.offset), host, bytes, &error);
  return copy_error(code, error, to, src.storage->device, bytes);
}

// The host can access the memory of both devices. True if the source copies the bytes, false if the destination does.
// An asynchronous device is preferred, since its caller need not wait. If both or neither are asynchronous, the device
// that does not hold host data is preferred, since its provider may have a faster way.
bool source_moves(const DeviceState* to, const DeviceState* from) {
  return to->synchronous != from->synchronous ? to->synchronous
                                              : !from->holds_host_data.load(std::memory_order_relaxed);
}

// --- between two devices neither of whose memory the host can reach ---

// Copies between two asynchronous devices. Each chunk is a download and an upload that waits for it; two buffers
// alternate, so that both engines are busy. The first upload counts as overwriting all of `dst`; later ones count as
// adding to it. So a failed chunk poisons the result.
Status copy_by_queues(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits) {
  const uint64_t chunk = std::min(bytes, kChunk);
  const uint64_t held = bytes > kChunk ? 2 * chunk : chunk;
  InFlight::instance().make_room(held);
  StagingHandle buffers[2];
  Ticket uploads[2];
  for (uint64_t begin = 0, turn = 0; begin < bytes; begin += chunk, turn ^= 1) {
    const uint64_t size = std::min(chunk, bytes - begin);
    if (buffers[turn] == nullptr) buffers[turn].reset(Staging::make(chunk));
    Staging* staging = buffers[turn].get();
    const Operand from = part_of(src, begin);
    const Ticket before[] = {uploads[turn]};
    Request down = download_request(std::span(&from, 1), staging->data, size,
                                    uploads[turn] ? std::span<const Ticket>(before) : waits);
    down.staging = staging;
    staging->retain();
    const Submitted first = submit(down);
    Operand to = part_of(dst, begin);
    to.whole = dst.whole && begin == 0;
    if (!first.ticket) return poison_destination(to, first.poison);
    Request up = upload_request(std::span(&to, 1), staging->data, size, {});
    up.staging = staging;
    up.source = first.ticket;
    staging->retain();
    TENON_RETURN_IF_ERROR(submit_and_follow(up, false, &uploads[turn]));
    if (!uploads[turn]) return Status();
    if (begin + size == bytes) InFlight::instance().add(uploads[turn], held);
  }
  return Status();
}

// Copies between two devices. One of them is synchronous, so the caller moves the bytes.
Status copy_by_caller(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits) {
  std::vector<char> staging(std::min(bytes, kChunk));
  for (uint64_t begin = 0; begin < bytes; begin += staging.size()) {
    const uint64_t size = std::min<uint64_t>(staging.size(), bytes - begin);
    TENON_RETURN_IF_ERROR(download(staging.data(), part_of(src, begin), size));
    Operand to = part_of(dst, begin);
    to.whole = dst.whole && begin == 0;
    TENON_RETURN_IF_ERROR(upload(to, staging.data(), size, begin == 0 ? waits : std::span<const Ticket>()));
  }
  return Status();
}

// Uploads from host memory that the caller may reuse at once: copies the bytes into staging memory now. `ticket` may be
// null.
Status upload_part(const Operand& dst, const char* src, uint64_t bytes, std::span<const Ticket> waits,
                   StagingHandle staging, Ticket* ticket = nullptr) {
  std::memcpy(staging->data, src, bytes);
  Request request = upload_request(std::span(&dst, 1), staging->data, bytes, waits);
  request.staging = staging.release();
  return submit_and_follow(request, false, ticket);
}

// The first chunk counts as overwriting all of `dst`; later ones count as adding to it. So a failed chunk poisons the
// result.
Status upload_by_chunks(const Operand& dst, const char* src, uint64_t bytes, std::span<const Ticket> waits) {
  StagingPool& pool = dst.storage->device->queue->staging;
  for (uint64_t begin = 0; begin < bytes; begin += kChunk) {
    const uint64_t size = std::min(kChunk, bytes - begin);
    InFlight::instance().make_room(size);
    Operand part = part_of(dst, begin);
    part.whole = dst.whole && begin == 0;
    Ticket ticket;
    TENON_RETURN_IF_ERROR(upload_part(part, src + begin, size, waits, pool.take(size), &ticket));
    if (!ticket) return Status();
    InFlight::instance().add(ticket, size);
    waits = {};
  }
  return Status();
}

Status copy_between(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits) {
  DeviceState* to = dst.storage->device;
  DeviceState* from = src.storage->device;
  TraceScope trace("copy", "copy", to);
  if (to->synchronous || from->synchronous) {
    for (Ticket ticket : waits) TENON_RETURN_IF_ERROR(wait(ticket));
    waits = {};
  }
  const bool multiples =
      whole_multiples(*to, dst.offset, src.offset, bytes) && whole_multiples(*from, src.offset, bytes);
  if (multiples && are_peers(to, from)) return copy_from_peer(dst, src, bytes, waits);
  const bool reach_dst = dst.storage->block.host != nullptr;
  const bool reach_src = src.storage->block.host != nullptr;
  if (reach_dst && (!reach_src || source_moves(to, from))) return download_into(dst, src, bytes, waits);
  if (reach_src) return upload_from(dst, src, bytes, waits);
  if (!to->synchronous && !from->synchronous) return copy_by_queues(dst, src, bytes, waits);
  return copy_by_caller(dst, src, bytes, waits);
}

Request transfer_request(Policy policy, const OpName& op, Stream& stream, std::span<const Operand> operands, char* host,
                         uint64_t bytes, std::span<const Ticket> waits) {
  Request request;
  request.policy = policy;
  request.stream = &stream;
  request.op = &op;
  request.operands = operands;
  request.waits = waits;
  request.bytes = bytes;
  request.host = host;
  return request;
}

}  // namespace

Request download_request(std::span<const Operand> operands, char* host, uint64_t bytes, std::span<const Ticket> waits) {
  DeviceQueue& queue = *operands[0].storage->device->queue;
  return transfer_request(Policy::download, kDownload, queue.download_stream(), operands, host, bytes, waits);
}

Request upload_request(std::span<const Operand> operands, const char* host, uint64_t bytes,
                       std::span<const Ticket> waits) {
  DeviceQueue& queue = *operands[0].storage->device->queue;
  return transfer_request(Policy::upload, kUpload, queue.upload_stream(), operands, const_cast<char*>(host), bytes,
                          waits);
}

// Poisons the bytes that `dst` writes, in the order of its device.
Status poison_destination(const Operand& dst, const Status& poison) {
  Request request;
  request.stream = &dst.storage->device->queue->upload_stream();
  request.op = &kCopy;
  request.operands = std::span(&dst, 1);
  request.poison = poison;
  const Submitted poisoned = submit(request);
  return synchronous_mode.load(std::memory_order_relaxed) ? tell(poisoned.poison) : Status();
}

Status copy(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits) {
  TENON_RETURN_IF_ERROR(process::usable());
  if (bytes == 0) return Status();
  if (dst.storage->device != src.storage->device) return copy_between(dst, src, bytes, waits);
  return dst.storage->device->synchronous ? inline_copy(dst, src, bytes, waits) : submit_copy(dst, src, bytes, waits);
}

Status upload(const Operand& dst, const void* src, uint64_t bytes, std::span<const Ticket> waits) {
  TENON_RETURN_IF_ERROR(process::usable());
  if (bytes == 0) return Status();
  DeviceState* device = dst.storage->device;
  if (device->synchronous) return inline_upload(dst, src, bytes, waits);
  const bool small = bytes <= kSmallUpload && bytes < pinned_from.load(std::memory_order_relaxed);
  if (small) return upload_part(dst, static_cast<const char*>(src), bytes, waits, StagingHandle(Staging::make(bytes)));
  return upload_by_chunks(dst, static_cast<const char*>(src), bytes, waits);
}

Status download(void* dst, const Operand& src, uint64_t bytes) {
  TENON_RETURN_IF_ERROR(process::usable());
  if (bytes == 0) return Status();
  if (src.storage->device->synchronous) return inline_download(dst, src, bytes);
  return submit_and_follow(download_request(std::span(&src, 1), static_cast<char*>(dst), bytes, {}), true);
}

}  // namespace tenon::vm
