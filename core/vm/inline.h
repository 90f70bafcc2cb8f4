// Instructions of a synchronous device: they run on their caller and are done on return.
#pragma once

#include "core/vm/vm.h"

namespace tenon::vm {

Status inline_launch(const OpLaunch& launch, std::span<const Ticket> waits);
// Both storages on one synchronous device.
Status inline_copy(const Operand& dst, const Operand& src, uint64_t bytes, std::span<const Ticket> waits);
Status inline_upload(const Operand& dst, const void* src, uint64_t bytes, std::span<const Ticket> waits);
Status inline_download(void* dst, const Operand& src, uint64_t bytes);
// What an inline instruction that uses `operand` has to wait for; its poison, if it reads it.
Status settle_operand(const Operand& operand);

// What an error says of a launch: the op, and what it works on ("relu(f32 [4, 5])"), worked out only then.
struct LaunchName {
  std::string_view op;
  std::string (*describe)(const void* context) = nullptr;
  const void* context = nullptr;
};

// How a launch on its caller ended. A failure is turned into a Status by launch_failure alone.
struct Launched {
  ep_status code = EP_STATUS_OK;
  ep_error* error = nullptr;
  ep_fault fault;  // of EP_STATUS_FAULT, if its code is not 0

  bool ok() const { return code == EP_STATUS_OK; }
};

// Launches a primitive of a synchronous device. Every launch that runs on its caller comes through here.
inline void launch_now(const Kernel& kernel, const DeviceState* device, const ep_launch& launch, Launched* out) {
  out->fault.code = 0;
  out->code = device->ops.primitive_launch(kernel.primitive, device->inline_stream, &launch, &out->fault, &out->error);
}

// The failure of such a launch, whose error it releases.
Status launch_failure(const Launched& launched, const LaunchName& name, const DeviceState* device);

// The error of a launch, with the op, what it works on and where.
Status launch_error(const Status& cause, std::string_view op, std::string_view what, const DeviceState* device);
// A sentence for a fault.
std::string fault_sentence(const ep_fault& fault);

}  // namespace tenon::vm
