#include "core/vm/vm.h"

#include <utility>

#include "core/device/call_context.h"
#include "core/device/process.h"
#include "core/device/trace.h"
#include "core/vm/engine.h"
#include "core/vm/inline.h"
#include "primitives/text/format.h"

namespace tenon::vm {
namespace {

constexpr uint16_t kComputeStream = 0;

Status submit_launch(const OpLaunch& launch, std::span<const Ticket> waits) {
  DeviceState* device = launch.primitive->device;
  TENON_RETURN_IF_ERROR(check_stream(device, launch.stream));
  Stream& stream = device->queue->stream(launch.stream);
  TraceScope trace(launch.op->op, "submit", device);
  if (launch.primitive->scratch_bytes != 0)
    TENON_RETURN_IF_ERROR(grow_scratch(stream, launch.primitive->scratch_bytes));
  Request request;
  request.stream = &stream;
  request.launch = &launch;
  request.op = launch.op;
  request.operands = launch.operands;
  request.waits = waits;
  if (launch.workspace_bytes == 0) [[likely]]
    return submit_and_follow(request, false);
  return submit_with_workspace(&request, launch.workspace_bytes);
}

}  // namespace

Status grow_scratch(Stream& stream, uint64_t bytes) {
  Engine& all = engine();
  DeviceState* device = stream.queue->device();
  {
    std::lock_guard lock(all.submission);
    if (stream.scratch.size >= bytes) return Status();
  }
  TicketList waits;
  TENON_ASSIGN_OR_RETURN(memory::Block block, device->allocator->allocate_aligned(bytes, &waits));
  for (Ticket ticket : waits) TENON_RETURN_IF_ERROR(wait(ticket));
  Ticket last;
  {
    std::lock_guard lock(all.submission);
    if (stream.scratch.size < block.size) {
      std::swap(stream.scratch, block);
      ++stream.scratch_number;
    }
    last = stream.ticket(stream.submitted.load(std::memory_order_relaxed));
  }
  if (block.memory != nullptr) device->allocator->release(block, std::span(&last, 1));
  return Status();
}

Status submit_with_workspace(Request* request, uint64_t bytes) {
  DeviceState* device = request->stream->queue->device();
  TicketList all_waits;
  all_waits.add(request->waits);
  TENON_ASSIGN_OR_RETURN(const memory::Block workspace, device->allocator->allocate_aligned(bytes, &all_waits));
  request->waits = all_waits;
  request->workspace = workspace.at(0);
  Ticket ticket;
  Status status = submit_and_follow(*request, false, &ticket);
  device->allocator->release(workspace, ticket ? std::span<const Ticket>(&ticket, 1) : std::span<const Ticket>());
  return status;
}

Status submit_and_follow(const Request& request, bool must_wait, Ticket* ticket) {
  if (!must_wait && !synchronous_mode.load(std::memory_order_relaxed)) [[likely]] {
    const Submitted submitted = submit(request);
    if (ticket != nullptr) *ticket = submitted.ticket;
    return Status();
  }
  Completion completion;
  Request followed = request;
  followed.completion = &completion;
  const Submitted submitted = submit(followed);
  if (ticket != nullptr) *ticket = submitted.ticket;
  if (!submitted.ticket) return tell(submitted.poison);
  TENON_RETURN_IF_ERROR(wait(submitted.ticket));
  return tell(completion.status);
}

Status check_stream(const DeviceState* device, uint16_t index) {
  if (index < device->queue->stream_count() && !device->queue->stream(index).on_host) return Status();
  return Status(Code::invalid_argument, fmt::format("{} has {} streams, but stream {} was requested.",
                                                    device->opened->spelling, device->queue->stream_count(), index));
}

Status launch(const OpLaunch& launch, std::span<const Ticket> waits) {
  TENON_RETURN_IF_ERROR(process::usable());
  return launch.primitive->device->synchronous ? inline_launch(launch, waits) : submit_launch(launch, waits);
}

Result<uint16_t> create_stream(DeviceState* device, int32_t priority) {
  TENON_RETURN_IF_ERROR(process::usable());
  if (device->synchronous) return kComputeStream;
  TENON_ASSIGN_OR_RETURN(Stream * stream, device->queue->add_stream(EP_STREAM_COMPUTE, priority));
  return stream->index;
}

uint16_t current_stream(DeviceState* device) {
  return device->spelling_number < CallContext::kStreams ? call_context.streams[device->spelling_number]
                                                         : kComputeStream;
}

void set_current_stream(DeviceState* device, uint16_t stream) {
  if (device->spelling_number < CallContext::kStreams) call_context.streams[device->spelling_number] = stream;
}

Status attach(DeviceState* device) {
  TENON_RETURN_IF_ERROR(process::usable());
  begin_life();
  if (device->synchronous) return Status();
  device->queue = new DeviceQueue(device);
  Status status = device->queue->add_stream(EP_STREAM_COMPUTE, 0).status();
  if (status.ok()) status = device->queue->add_stream(EP_STREAM_COPY, 0).status();
  if (!status.ok()) {
    device->queue->close();
    delete std::exchange(device->queue, nullptr);
    return status;
  }
  std::lock_guard lock(engine().submission);
  engine().queues.push_back(device->queue);
  return Status();
}

}  // namespace tenon::vm
