// Facts of a call before anything is prepared: the metadata of its outputs, its device, its name in errors. Internal.
#pragma once

#include <string>
#include <vector>

#include "core/device/device_state.h"
#include "core/ops/op_call.h"

namespace tenon {

// The metadata of the outputs of `call`. Checks outputs that the caller gave. The strides of a new output are those
// that the op keeps (elementwise ops and casts keep the order of their inputs), else row-major.
Status infer_outputs(const OpCall& call, std::vector<TensorMeta>* outputs);
// The same into room for as many as `call` has.
Status infer_outputs(const OpCall& call, TensorMeta* outputs);

// The device of `call`: of its tensors, which must agree, else the one it names, else the current one.
// Errors: invalid_argument, "add: expected all tensors to be on the same device, but found ...".
Result<DeviceState*> device_of(const OpCall& call);

// "matmul(f32 [4, 5], f32 [6, 7])"
std::string describe(const OpCall& call);
// Notes the inputs of the OpCall at `call`, in the form that vm::OpLaunch::note has.
void note_call(const void* call, std::vector<int64_t>* inputs);

}  // namespace tenon
