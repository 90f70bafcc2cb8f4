// Instructions of a synchronous device: they run on their caller and are done on return.
#pragma once

#include "core/vm/vm.h"

namespace tenon::vm {

Status inline_launch(const OpLaunch& launch, std::span<const Ticket> waits);
// Copies between two storages of one synchronous device.
Status inline_copy(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits);
Status inline_upload(const Operand& dst, const void* src, uint64_t bytes, std::span<const Ticket> waits);
Status inline_download(void* dst, const Operand& src, uint64_t bytes);
Status wait_all(std::span<const Ticket> waits);
// Waits until an inline instruction may use `operand`. Returns the storage's poison if the instruction reads it.
Status settle_operand(const Operand& operand);

// The name of a launch in errors. The text of the inputs is made only if there is an error.
struct LaunchName {
  const OpName* op = nullptr;  // the op of the record
  void (*note)(const void* context, std::vector<int64_t>* inputs) = nullptr;
  const void* context = nullptr;
  uint64_t operand_inputs = kNoInputs;
};

// The result of a launch on its caller. Only launch_failure turns a failure into a Status.
struct Launched {
  ep_status code = EP_STATUS_OK;
  ep_error* error = nullptr;
  ep_fault fault;  // valid for EP_STATUS_FAULT, if its code is not 0

  bool ok() const { return code == EP_STATUS_OK; }
};

// The workspace of a launch on its caller. It returns to the allocator at the end.
class InlineWorkspace {
 public:
  InlineWorkspace() = default;
  InlineWorkspace(const InlineWorkspace&) = delete;
  InlineWorkspace& operator=(const InlineWorkspace&) = delete;
  ~InlineWorkspace() {
    if (block_.memory != nullptr) device_->allocator->release(block_, {});
  }

  // Allocates `bytes`, if not 0, and waits until the memory is unused. Called once.
  Status take(DeviceState* device, uint64_t bytes) { return bytes == 0 ? Status() : take_some(device, bytes); }
  ep_buffer buffer() const { return block_.memory == nullptr ? ep_buffer{} : block_.at(0); }

 private:
  Status take_some(DeviceState* device, uint64_t bytes);

  DeviceState* device_ = nullptr;
  memory::Block block_;
};

// Launches a primitive of a synchronous device. Every launch that runs on its caller uses this function.
inline void launch_now(const Primitive& primitive, const DeviceState* device, const ep_launch& launch, Launched* out) {
  out->fault.code = 0;
  out->code = device->ops.primitive_launch(primitive.handle, device->inline_stream, &launch, &out->fault, &out->error);
}

// The failure of `launched` as a Status. Releases its error.
Status launch_failure(const Launched& launched, const LaunchName& name, const DeviceState* device);

// The error of one node of a program that runs as a whole: `cause` with the node's op, inputs and label.
Status node_error(const NodeName& node, const Status& cause, const DeviceState* device);
// Like node_error, for a fault of the node.
Status node_fault(const NodeName& node, const ep_fault& fault, const DeviceState* device);
// The error of a launch of `graph` that met bad data. It names the node, by its op and its label.
Status graph_fault(const CompiledGraph& graph, const ep_fault& fault);

// The error of an instruction: `cause` with the op that was called, and "while running `what` on `device`".
Status launch_error(const Status& cause, std::string_view called, std::string_view what, const DeviceState* device);
// `status` with "while running `label` on `device`", unless it has that line already.
Status with_label(const Status& status, std::string_view label, std::string_view device);

}  // namespace tenon::vm
