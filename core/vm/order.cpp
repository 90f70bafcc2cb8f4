// Makes streams wait for other streams without common data.
#include <vector>

#include "core/device/process.h"
#include "core/vm/engine.h"

namespace tenon::vm {
namespace {

// Submits an instruction to `stream` that waits for `tickets` and does nothing else.
Status submit_wait(Stream& stream, const OpName& op, std::span<const Ticket> tickets, Ticket* ticket = nullptr) {
  Request request;
  request.policy = Policy::wait;
  request.stream = &stream;
  request.op = &op;
  request.waits = tickets;
  return submit_and_follow(request, false, ticket);
}

Ticket last_of(const Stream& stream) { return stream.ticket(stream.submitted.load(std::memory_order_acquire)); }

}  // namespace

Status wait_stream(DeviceState* device, uint16_t index, DeviceState* other, uint16_t other_index) {
  TENON_RETURN_IF_ERROR(process::usable());
  if (other->synchronous) return Status();
  TENON_RETURN_IF_ERROR(check_stream(other, other_index));
  const Ticket last = last_of(other->queue->stream(other_index));
  if (device->synchronous) return wait(last);
  TENON_RETURN_IF_ERROR(check_stream(device, index));
  return submit_wait(device->queue->stream(index), kWait, std::span(&last, 1));
}

Status barrier(DeviceState* device) {
  TENON_RETURN_IF_ERROR(process::usable());
  if (device->synchronous) return Status();
  DeviceQueue& queue = *device->queue;
  std::vector<Ticket> before;
  for (uint16_t i = 0; i < queue.stream_count(); ++i) before.push_back(last_of(queue.stream(i)));
  Ticket meeting;
  TENON_RETURN_IF_ERROR(submit_wait(queue.compute_stream(), kBarrier, before, &meeting));
  for (uint16_t i = 1; i < queue.stream_count(); ++i) {
    TENON_RETURN_IF_ERROR(submit_wait(queue.stream(i), kBarrier, std::span(&meeting, 1)));
  }
  return Status();
}

}  // namespace tenon::vm
