#include "core/vm/vm.h"

#include <array>
#include <cstring>

#include "core/vm/engine.h"
#include "core/vm/inline.h"
#include "core/vm/lifecycle.h"
#include "core/vm/trace.h"

namespace tenon::vm {
namespace {

constexpr uint16_t kComputeStream = 0;
constexpr uint16_t kCopyStream = 1;
constexpr uint64_t kStagedUpload = 64 * 1024;  // smaller uploads are copied and not waited for

constexpr uint16_t kDeviceIds = 64;
thread_local constinit std::array<uint16_t, kDeviceIds> current_streams{};  // by device id

Stream& copy_stream(DeviceState* device) { return device->queue->stream(kCopyStream); }

Staging* make_staging(const void* src, uint64_t bytes) {
  auto* staging = new Staging;
  staging->bytes.resize(bytes);
  if (src != nullptr) std::memcpy(staging->bytes.data(), src, bytes);
  return staging;
}

// Submits, and in TENON_VM=sync, or where `must_wait`, waits for the end and returns how it ended.
Status submit_and_follow(Request request, bool must_wait, Ticket* ticket = nullptr) {
  Completion completion;
  const bool follow = must_wait || synchronous_mode.load(std::memory_order_relaxed);
  if (follow) request.completion = &completion;
  const Submitted submitted = submit(request);
  if (ticket != nullptr) *ticket = submitted.ticket;
  if (!follow) return Status();
  if (!submitted.ticket) return submitted.poison;
  TENON_RETURN_IF_ERROR(wait(submitted.ticket));
  if (!completion.status.ok()) {
    std::lock_guard lock(engine().submission);
    engine().reported(completion.status);
  }
  return completion.status;
}

// The stream's persistent scratch is at least `bytes` afterwards.
Status grow_scratch(Stream& stream, uint64_t bytes) {
  Engine& all = engine();
  DeviceState* device = stream.queue->device();
  {
    std::lock_guard lock(all.submission);
    if (stream.scratch.size >= bytes) return Status();
  }
  std::vector<Ticket> waits;
  TENON_ASSIGN_OR_RETURN(memory::Block block, allocate_workspace(device, bytes, &waits));
  for (Ticket ticket : waits) TENON_RETURN_IF_ERROR(wait(ticket));
  Ticket last;
  {
    std::lock_guard lock(all.submission);
    if (stream.scratch.size < block.size) std::swap(stream.scratch, block);
    last = stream.ticket(stream.submitted.load(std::memory_order_relaxed));
  }
  if (block.memory != nullptr) device->allocator->release(block, std::span(&last, 1));
  return Status();
}

Status check_stream(const DeviceState* device, uint16_t index) {
  if (index < device->queue->stream_count()) return Status();
  return Status(Code::invalid_argument, device->opened->spelling + " has " +
                                            std::to_string(device->queue->stream_count()) + " streams, but stream " +
                                            std::to_string(index) + " was asked for.");
}

Status submit_launch(const OpLaunch& launch, std::span<const Ticket> waits) {
  DeviceState* device = launch.kernel->device;
  TENON_RETURN_IF_ERROR(check_stream(device, launch.stream));
  Stream& stream = device->queue->stream(launch.stream);
  TraceScope trace(launch.op, "submit", device);
  if (launch.kernel->scratch_bytes != 0) TENON_RETURN_IF_ERROR(grow_scratch(stream, launch.kernel->scratch_bytes));
  Request request;
  request.stream = &stream;
  request.launch = &launch;
  request.op = launch.op;
  request.operands = launch.operands;
  request.waits = waits;
  if (launch.workspace_bytes == 0) [[likely]]
    return submit_and_follow(request, false);

  std::vector<Ticket> all_waits(waits.begin(), waits.end());
  TENON_ASSIGN_OR_RETURN(const memory::Block workspace, allocate_workspace(device, launch.workspace_bytes, &all_waits));
  request.waits = all_waits;
  request.workspace = workspace.at(0);
  Ticket ticket;
  Status status = submit_and_follow(request, false, &ticket);
  device->allocator->release(workspace, ticket ? std::span<const Ticket>(&ticket, 1) : std::span<const Ticket>());
  return status;
}

// Device memory to host memory that `record` (of another device) or `staging` owns.
Status submit_download(Stream& stream, std::span<const Operand> operands, char* host, uint64_t bytes,
                       std::span<const Ticket> waits, Staging* staging, bool must_wait, Submitted* out) {
  Request request;
  request.policy = Policy::download;
  request.stream = &stream;
  request.op = "download";
  request.operands = operands;
  request.waits = waits;
  request.bytes = bytes;
  request.host = host;
  request.staging = staging;
  if (out == nullptr) return submit_and_follow(request, must_wait);
  *out = submit(request);
  return Status();
}

Status submit_upload(Stream& stream, std::span<const Operand> operands, const char* host, uint64_t bytes,
                     std::span<const Ticket> waits, Staging* staging, Ticket source, bool must_wait) {
  Request request;
  request.policy = Policy::upload;
  request.stream = &stream;
  request.op = "upload";
  request.operands = operands;
  request.waits = waits;
  request.source = source;
  request.bytes = bytes;
  request.host = const_cast<char*>(host);
  request.staging = staging;
  return submit_and_follow(request, must_wait);
}

// Between two asynchronous devices through host memory: two instructions, the second of which waits for the first.
Status copy_through_host(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits) {
  Staging* staging = make_staging(nullptr, bytes);
  staging->count.store(2, std::memory_order_relaxed);
  char* host = staging->bytes.data();
  Submitted first;
  TENON_RETURN_IF_ERROR(submit_download(copy_stream(src.storage->device), std::span(&src, 1), host, bytes, waits,
                                        staging, false, &first));
  if (first.ticket) {
    return submit_upload(copy_stream(dst.storage->device), std::span(&dst, 1), host, bytes, {}, staging, first.ticket,
                         false);
  }
  staging->release();
  Request request;
  request.stream = &copy_stream(dst.storage->device);
  request.op = "copy";
  request.operands = std::span(&dst, 1);
  request.poison = first.poison;
  const Submitted poisoned = submit(request);
  return synchronous_mode.load(std::memory_order_relaxed) ? poisoned.poison : Status();
}

Status submit_copy(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits) {
  DeviceState* to = dst.storage->device;
  DeviceState* from = src.storage->device;
  TraceScope trace("copy", "submit", to);
  if (to == from) {
    TENON_RETURN_IF_ERROR(check_stream(to, current_stream(to)));
    const Operand operands[] = {dst, src};
    Request request;
    request.policy = Policy::copy;
    request.stream = &to->queue->stream(current_stream(to));
    request.op = "copy";
    request.operands = operands;
    request.waits = waits;
    request.bytes = bytes;
    return submit_and_follow(request, false);
  }
  const bool to_host = to->synchronous && dst.storage->block.host != nullptr;
  const bool from_host = from->synchronous && src.storage->block.host != nullptr;
  if (to_host) {
    const Operand operands[] = {src, dst};
    return submit_download(copy_stream(from), operands, dst.storage->block.host + dst.offset, bytes, waits, nullptr,
                           false, nullptr);
  }
  if (from_host) {
    const Operand operands[] = {dst, src};
    return submit_upload(copy_stream(to), operands, src.storage->block.host + src.offset, bytes, waits, nullptr, {},
                         false);
  }
  if (!to->synchronous && !from->synchronous) return copy_through_host(dst, src, bytes, waits);
  // A synchronous device whose memory the host cannot reach: by way of the caller.
  std::vector<char> staging(bytes);
  TENON_RETURN_IF_ERROR(download(staging.data(), src, bytes));
  return upload(dst, staging.data(), bytes, waits);
}

}  // namespace

Status launch(const OpLaunch& launch, std::span<const Ticket> waits) {
  TENON_RETURN_IF_ERROR(usable());
  return launch.kernel->device->synchronous ? inline_launch(launch, waits) : submit_launch(launch, waits);
}

Status copy(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits) {
  TENON_RETURN_IF_ERROR(usable());
  if (bytes == 0) return Status();
  const bool both = dst.storage->device->synchronous && src.storage->device->synchronous;
  return both ? inline_copy(dst, src, bytes, waits) : submit_copy(dst, src, bytes, waits);
}

Status upload(const Operand& dst, const void* src, uint64_t bytes, std::span<const Ticket> waits) {
  TENON_RETURN_IF_ERROR(usable());
  if (bytes == 0) return Status();
  DeviceState* device = dst.storage->device;
  if (device->synchronous) return inline_upload(dst, src, bytes, waits);
  Stream& stream = copy_stream(device);
  if (bytes > kStagedUpload) {
    return submit_upload(stream, std::span(&dst, 1), static_cast<const char*>(src), bytes, waits, nullptr, {}, true);
  }
  Staging* staging = make_staging(src, bytes);
  return submit_upload(stream, std::span(&dst, 1), staging->bytes.data(), bytes, waits, staging, {}, false);
}

Status download(void* dst, const Operand& src, uint64_t bytes) {
  TENON_RETURN_IF_ERROR(usable());
  if (bytes == 0) return Status();
  DeviceState* device = src.storage->device;
  if (device->synchronous) return inline_download(dst, src, bytes);
  return submit_download(copy_stream(device), std::span(&src, 1), static_cast<char*>(dst), bytes, {}, nullptr, true,
                         nullptr);
}

Result<uint16_t> create_stream(DeviceState* device) {
  TENON_RETURN_IF_ERROR(usable());
  if (device->synchronous) return kComputeStream;
  TENON_ASSIGN_OR_RETURN(Stream * stream, device->queue->add_stream());
  return stream->index;
}

uint16_t current_stream(DeviceState* device) {
  return device->id < kDeviceIds ? current_streams[device->id] : kComputeStream;
}

void set_current_stream(DeviceState* device, uint16_t stream) {
  if (device->id < kDeviceIds) current_streams[device->id] = stream;
}

Status attach(DeviceState* device) {
  TENON_RETURN_IF_ERROR(usable());
  register_exit_hook();
  if (device->synchronous) return Status();
  device->queue = new DeviceQueue(device);
  TENON_RETURN_IF_ERROR(device->queue->add_stream().status());
  TENON_RETURN_IF_ERROR(device->queue->add_stream().status());
  std::lock_guard lock(engine().submission);
  engine().queues.push_back(device->queue);
  return Status();
}

}  // namespace tenon::vm
