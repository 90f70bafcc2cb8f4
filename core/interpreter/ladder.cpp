#include "core/interpreter/ladder.h"

#include <utility>

#include "core/device/call_context.h"
#include "core/device/device_state.h"
#include "core/interpreter/eager.h"
#include "core/interpreter/transfer.h"
#include "core/ops/decompose/decompose.h"
#include "core/tensor/opened_devices.h"

namespace tenon {
namespace {

// While this object lives, count_moved adds to `bytes`.
struct MovedBytes {
  uint64_t bytes = 0;
  ContextScope<&CallContext::moved_bytes> scope{&bytes};
};

}  // namespace

void count_moved(uint64_t bytes) {
  if (call_context.moved_bytes != nullptr) *call_context.moved_bytes += bytes;
}

uint64_t run_decomposed(const OpCall& call) {
  MovedBytes moved;
  const InterpreterScope scope(eager_interpreter());
  const PrecisionScope precision(call.precision);
  Tensor made[EP_MAX_OPERANDS];
  OpCall inner = call;
  inner.outputs = {made, call.outputs.size()};
  ops::decompose(inner);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i].defined()) {
      copy_elements(call.outputs[i], made[i]);
    } else {
      call.outputs[i] = std::move(made[i]);
    }
  }
  return moved.bytes;
}

uint64_t run_on_host(const OpCall& call, DeviceState* device) {
  DeviceState* host = value_or_throw(host_device_state());
  uint64_t moved = 0;
  Tensor inputs[EP_MAX_OPERANDS];
  const Tensor* pointers[EP_MAX_OPERANDS] = {};
  Tensor made[EP_MAX_OPERANDS];
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] == nullptr) continue;
    inputs[i] = transfer(*call.inputs[i], host, &moved);
    pointers[i] = &inputs[i];
  }
  OpCall inner = call;
  inner.device = host;
  inner.inputs = {pointers, call.inputs.size()};
  inner.outputs = {made, call.outputs.size()};
  eager_interpreter().apply(inner);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i].defined()) {
      moved += store_into_view(call.outputs[i], made[i]);
    } else {
      call.outputs[i] = transfer(made[i], device, &moved);
    }
  }
  return moved;
}

}  // namespace tenon
