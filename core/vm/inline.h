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

// The error of a launch, with the op, what it works on and where.
Status launch_error(const Status& cause, std::string_view op, std::string_view what, const DeviceState* device);
// A sentence for a fault.
std::string fault_sentence(const ep_fault& fault);

}  // namespace tenon::vm
