// How a kernel reports a fault.
#pragma once

#include "providers/cuda/kernels/arguments.h"
#include "providers/cuda/kernels/device.h"

namespace tenon::provider::cuda {

// Keeps the first fault of a launch.
TENON_ON_GPU void report_fault(const FaultTarget& target, int32_t code, int64_t value, int64_t limit = 0) {
  if (target.claim == 0 || !claim_raised(reinterpret_cast<uint64_t*>(target.claim), target.sequence)) return;
  auto* slot = reinterpret_cast<FaultSlot*>(target.slot);
  slot->value = value;
  slot->code = code;
  slot->limit = limit;
  publish();
  slot->sequence = target.sequence;
}

}  // namespace tenon::provider::cuda
