// Orders the work of a device and the work of other APIs: semaphores, imported streams, and the storages that both
// sides use.
#include <algorithm>
#include <vector>

#include "core/device/process.h"
#include "core/vm/engine.h"

namespace tenon::vm {
namespace {

constexpr uint64_t kSliceNs = 100'000'000;

SemaphoreWork* work_of(SemaphoreValue&& use, bool signals) {
  if (use.semaphore == nullptr) return nullptr;
  return new SemaphoreWork{std::move(use.semaphore), use.value, signals};
}

Request request_of(Stream& stream, const OpName& op, SemaphoreWork* work) {
  Request request;
  request.policy = work != nullptr ? Policy::semaphore : Policy::wait;
  request.stream = &stream;
  request.op = &op;
  request.semaphore = work;
  return request;
}

}  // namespace

ImportedSemaphore::~ImportedSemaphore() {
  if (!process::ended() && !process::forked()) device->ops.semaphore_destroy(device->handle, handle);
  device->semaphores.fetch_sub(1, std::memory_order_relaxed);
}

Status acquire(DeviceState* device, uint16_t index, std::span<Storage* const> storages, SemaphoreValue until) {
  TENON_RETURN_IF_ERROR(process::usable());
  if (device->synchronous) {
    for (Storage* storage : storages) TENON_RETURN_IF_ERROR(settle(storage, true, true));
    return Status();
  }
  TENON_RETURN_IF_ERROR(check_stream(device, index));
  Stream& stream = device->queue->stream(index);
  SemaphoreWork* work = work_of(std::move(until), false);
  Ticket first;
  do {  // the number of storages that a slot can keep
    const std::span<Storage* const> some = storages.first(std::min<size_t>(storages.size(), EP_MAX_OPERANDS));
    storages = storages.subspan(some.size());
    std::vector<Operand> operands;
    for (Storage* storage : some) operands.push_back({storage, 0, true, true});
    Request request = request_of(stream, work != nullptr ? kWaitSemaphore : kAcquire, work);
    work = nullptr;
    request.operands = operands;
    request.source = first;
    const Ticket ticket = submit(request).ticket;
    if (!first) first = ticket;
  } while (!storages.empty());
  return Status();
}

Status release(DeviceState* device, uint16_t index, std::span<Storage* const> storages, SemaphoreValue then) {
  TENON_RETURN_IF_ERROR(process::usable());
  if (device->synchronous) {
    for (Storage* storage : storages) TENON_RETURN_IF_ERROR(settle(storage, true, false));
    return Status();
  }
  TENON_RETURN_IF_ERROR(check_stream(device, index));
  TicketList uses;
  for (Storage* storage : storages) pending_uses(storage, &uses);
  SemaphoreWork* work = work_of(std::move(then), true);
  Request request = request_of(device->queue->stream(index), work != nullptr ? kSignalSemaphore : kRelease, work);
  request.waits = uses;
  submit(request);
  return Status();
}

Status flush(DeviceState* device, uint16_t index) {
  TENON_RETURN_IF_ERROR(process::usable());
  if (device->synchronous) return Status();
  TENON_RETURN_IF_ERROR(check_stream(device, index));
  DeviceQueue& queue = *device->queue;
  Stream& stream = queue.stream(index);
  const uint64_t last = stream.submitted.load(std::memory_order_acquire);
  for (;;) {
    const NextStep step = queue.hand_over(stream, last);
    if (step.mark != nullptr) queue.wait_mark(step.mark, kSliceNs);
    if (step.on_host) queue.wait_host(step.on_host, kSliceNs);
    if (step.elsewhere) static_cast<void>(wait_for(step.elsewhere, kSliceNs));
    if (stream.launched.load(std::memory_order_acquire) >= last && !step.mark && !step.on_host && !step.elsewhere) {
      return Status();
    }
  }
}

Result<uint16_t> import_stream(DeviceState* device, const ep_import_desc& desc) {
  TENON_RETURN_IF_ERROR(process::usable());
  TENON_ASSIGN_OR_RETURN(Stream * stream, device->queue->import_stream(desc));
  return stream->index;
}

}  // namespace tenon::vm
