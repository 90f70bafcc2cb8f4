#include "core/vm/inline.h"

#include <array>

#include "core/device/process.h"
#include "core/device/trace.h"
#include "core/vm/granular.h"
#include "core/vm/thread_scratch.h"
#include "primitives/dtype/dtype.h"
#include "primitives/text/format.h"

namespace tenon::vm {
namespace {

Status run(const OpLaunch& launch, ep_buffer workspace, ThreadScratch* scratch) {
  DeviceState* device = launch.primitive->device;
  std::array<ep_buffer, EP_MAX_OPERANDS> buffers;
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    const Operand& operand = launch.operands[i];
    buffers[i] = operand.storage != nullptr ? operand.storage->block.at(operand.offset) : ep_buffer{nullptr, 0};
  }
  ep_launch request{};
  request.operands = buffers.data();
  request.shapes = launch.shapes;
  request.scalars = launch.scalars;
  request.operand_count = static_cast<uint32_t>(launch.operands.size());
  request.scalar_count = launch.scalar_count;
  request.workspace = workspace;
  if (scratch != nullptr) request.scratch = scratch->block.at(0);
  Launched launched;
  launch_now(*launch.primitive, device, request, &launched);
  if (launched.ok()) [[likely]]
    return Status();
  if (scratch != nullptr) scratch->dirty = true;
  return launch_failure(launched, {launch.op, launch.note, launch.context, launch.operand_inputs}, device);
}

}  // namespace

Status wait_all(std::span<const Ticket> waits) {
  for (Ticket ticket : waits) TENON_RETURN_IF_ERROR(wait(ticket));
  return Status();
}

Status InlineWorkspace::take_some(DeviceState* device, uint64_t bytes) {
  TicketList pending;
  TENON_ASSIGN_OR_RETURN(block_, device->allocator->allocate_aligned(bytes, &pending));
  device_ = device;
  return wait_all(pending);
}

Status settle_operand(const Operand& operand) {
  if (operand.storage == nullptr || !operand.storage->busy_for_read()) return Status();
  return settle(operand.storage, operand.write, operand.whole);
}

Status launch_failure(const Launched& launched, const LaunchName& name, const DeviceState* device) {
  const OpName& called = call_site.called != nullptr ? *call_site.called : *name.op;
  Status cause = loader::take_error(launched.code, launched.error, {});
  if (launched.code == EP_STATUS_FAULT) {
    cause = fault_status(launched.fault, argument_name(called, name.operand_inputs, launched.fault.operand));
  }
  std::vector<int64_t> inputs;
  if (name.note != nullptr) name.note(name.context, &inputs);
  return launch_error(cause, called.op, name.note != nullptr ? call_text(name.op->op, inputs) : std::string(), device);
}

Status launch_error(const Status& cause, std::string_view called, std::string_view what, const DeviceState* device) {
  const std::string_view name = called.empty() ? std::string_view("the instruction") : called;
  return with_label(cause.with_caller(name), what.empty() ? name : what, device->opened->spelling);
}

Status with_label(const Status& status, std::string_view label, std::string_view device) {
  return status.with_context(fmt::format("while running {} on {}", label, device));
}

Status inline_launch(const OpLaunch& launch, std::span<const Ticket> waits) {
  DeviceState* device = launch.primitive->device;
  TENON_RETURN_IF_ERROR(wait_all(waits));
  for (const Operand& operand : launch.operands) TENON_RETURN_IF_ERROR(settle_operand(operand));
  ThreadScratch* scratch = nullptr;
  if (launch.primitive->scratch_bytes != 0) {
    TENON_ASSIGN_OR_RETURN(scratch, thread_scratch_of(device, launch.primitive->scratch_bytes));
  }
  TraceScope trace(launch.op->op, "launch", device);
  InlineWorkspace workspace;
  TENON_RETURN_IF_ERROR(workspace.take(device, launch.workspace_bytes));
  return run(launch, workspace.buffer(), scratch);
}

Status inline_copy(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits) {
  TENON_RETURN_IF_ERROR(wait_all(waits));
  TENON_RETURN_IF_ERROR(settle_operand(src));
  TENON_RETURN_IF_ERROR(settle_operand(dst));
  DeviceState* device = dst.storage->device;
  TraceScope trace("copy", "copy", device);
  ep_error* error = nullptr;
  const ep_status code = copy_bytes(*device, device->inline_stream, dst.storage->block.at(dst.offset),
                                    src.storage->block.at(src.offset), bytes, &error);
  if (code == EP_STATUS_OK) return Status();
  return loader::take_error(code, error, fmt::format("copying {} bytes on {}", bytes, device->opened->spelling));
}

Status inline_upload(const Operand& dst, const void* src, uint64_t bytes, std::span<const Ticket> waits) {
  TENON_RETURN_IF_ERROR(wait_all(waits));
  TENON_RETURN_IF_ERROR(settle_operand(dst));
  DeviceState* device = dst.storage->device;
  TraceScope trace("upload", "copy", device);
  ep_error* error = nullptr;
  const ep_status code =
      upload_bytes(*device, device->inline_stream, dst.storage->block.at(dst.offset), src, bytes, &error);
  if (code == EP_STATUS_OK) return Status();
  return loader::take_error(code, error, fmt::format("uploading {} bytes to {}", bytes, device->opened->spelling));
}

Status inline_download(void* dst, const Operand& src, uint64_t bytes) {
  TENON_RETURN_IF_ERROR(settle_operand(src));
  DeviceState* device = src.storage->device;
  TraceScope trace("download", "copy", device);
  ep_error* error = nullptr;
  const ep_status code =
      download_bytes(*device, device->inline_stream, dst, src.storage->block.at(src.offset), bytes, &error);
  if (code == EP_STATUS_OK) return Status();
  return loader::take_error(code, error, fmt::format("downloading {} bytes from {}", bytes, device->opened->spelling));
}

}  // namespace tenon::vm
