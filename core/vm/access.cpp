// Access: runs functions of the application on a tensor's bytes, in the order of instructions.
#include <memory>
#include <utility>
#include <vector>

#include "core/device/process.h"
#include "core/device/trace.h"
#include "core/vm/engine.h"
#include "core/vm/inline.h"

namespace tenon::vm {
namespace {

using Function = std::function<void(void*)>;

Status run_here(const Function& function, void* data, const DeviceState* device) {
  TraceScope trace(kAccess.op, "access", device);
  const Status status = run_host_function(function, data);
  return status.ok() ? status : launch_error(status, kAccess.op, {}, device);
}

// Runs `function` on the caller.
Status access_inline(const Operand& operand, uint64_t bytes, bool load, const Function& function) {
  const memory::Block& block = operand.storage->block;
  DeviceState* device = operand.storage->device;
  if (block.host != nullptr) {
    TENON_RETURN_IF_ERROR(settle_operand(operand));
    return run_here(function, block.host + operand.offset, device);
  }
  std::vector<char> staging(bytes);
  if (load) TENON_RETURN_IF_ERROR(download(staging.data(), operand, bytes));
  TENON_RETURN_IF_ERROR(run_here(function, staging.data(), device));
  return operand.write ? upload(operand, staging.data(), bytes, {}) : Status();
}

Result<Request> access_request(DeviceState* device, Function function, void* data) {
  Request request;
  request.policy = Policy::access;
  TENON_ASSIGN_OR_RETURN(request.stream, device->queue->host_stream());
  request.op = &kAccess;
  request.work = new HostWork{std::move(function), data, false};
  return request;
}

Status access_mapped(const Operand& operand, Function function) {
  Storage* storage = operand.storage;
  TENON_ASSIGN_OR_RETURN(Request request,
                         access_request(storage->device, std::move(function), storage->block.host + operand.offset));
  request.operands = std::span(&operand, 1);
  return submit_and_follow(request, false);
}

// Submits a download, the function and an upload. Each waits for the one before it, and fails if that one fails.
Status access_by_copies(const Operand& operand, uint64_t bytes, bool load, Function function) {
  InFlight::instance().make_room(bytes);
  DeviceState* device = operand.storage->device;
  StagingHandle staging(Staging::make(bytes));
  TENON_ASSIGN_OR_RETURN(Request request, access_request(device, std::move(function), staging->data));
  std::unique_ptr<HostWork> work(std::exchange(request.work, nullptr));
  if (load) {
    const Operand from{operand.storage, operand.offset, false, false};
    Request down = download_request(std::span(&from, 1), staging->data, bytes, {});
    down.staging = staging.get();
    staging->retain();
    const Submitted first = submit(down);
    if (!first.ticket && operand.write) return poison_destination(operand, first.poison);
    if (!first.ticket) return synchronous_mode.load(std::memory_order_relaxed) ? tell(first.poison) : Status();
    request.source = first.ticket;
  }
  request.staging = staging.get();
  staging->retain();
  request.work = work.release();
  Ticket last;
  if (Status ran = submit_and_follow(request, false, &last); !ran.ok()) {
    if (operand.write) static_cast<void>(poison_destination(operand, ran));
    return ran;
  }
  if (operand.write) {
    Request up = upload_request(std::span(&operand, 1), staging->data, bytes, {});
    up.staging = staging.get();
    staging->retain();
    up.source = last;
    TENON_RETURN_IF_ERROR(submit_and_follow(up, false, &last));
  }
  if (last) InFlight::instance().add(last, bytes);
  return Status();
}

}  // namespace

Status access(const Operand& operand, uint64_t bytes, bool load, Function function) {
  TENON_RETURN_IF_ERROR(process::usable());
  if (operand.storage->device->synchronous) return access_inline(operand, bytes, load, function);
  if (operand.storage->block.host != nullptr) return access_mapped(operand, std::move(function));
  return access_by_copies(operand, bytes, load, std::move(function));
}

}  // namespace tenon::vm
