// Facts about a call before it is prepared: the metadata of its outputs, its device, its name in errors. Internal.
#pragma once

#include <string>
#include <vector>

#include "core/device/device_state.h"
#include "core/ops/op_call.h"

namespace tenon {

// The metadata of the outputs of `call`. Checks outputs that the caller gave. The strides of a new output follow the
// op's rule (element-wise ops and casts keep the order of their inputs), else they are row-major.
Status infer_outputs(const OpCall& call, std::vector<TensorMeta>* outputs);
// Like the function above; `outputs` has room for all outputs of `call`.
Status infer_outputs(const OpCall& call, TensorMeta* outputs);

// The device of `call`: the device of its tensors, which must agree; else the one that it names; else the current one.
// Errors: invalid_argument, "add: expected all tensors to be on the same device, but found ...".
Result<DeviceState*> device_of(const OpCall& call);

// "matmul(f32 [4, 5], f32 [6, 7])"
std::string describe(const OpCall& call);
// "(f32 [4, 5], f32 [6, 7])"
std::string arguments_text(const OpCall& call);
// Adds the inputs of the OpCall at `call`; has the signature of vm::OpLaunch::note.
void note_call(const void* call, std::vector<int64_t>* inputs);

}  // namespace tenon
