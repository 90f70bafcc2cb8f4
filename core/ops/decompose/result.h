// How a decomposition returns its result.
#pragma once

#include "core/ops/functors/apply.h"
#include "core/ops/op_call.h"

namespace tenon::ops {

// Stores `result` as the output of the call; if the caller gave an output, copies the result into it.
inline void store(const OpCall& call, const Tensor& result) {
  if (call.outputs[0].defined()) {
    copy_(call.outputs[0], result);
  } else {
    call.outputs[0] = result;
  }
}

inline const Tensor& input(const OpCall& call, size_t index) { return *call.inputs[index]; }

// Input `index`; undefined if it is absent.
inline Tensor optional(const OpCall& call, size_t index) {
  return index < call.inputs.size() && call.inputs[index] != nullptr ? *call.inputs[index] : Tensor();
}

}  // namespace tenon::ops
