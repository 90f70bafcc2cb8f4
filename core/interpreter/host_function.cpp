// Ops of libraries that are functions on the host (core/ops/library_call.h). They compute on row-major host tensors.
#include <vector>

#include "core/device/device_state.h"
#include "core/interpreter/inference.h"
#include "core/interpreter/ladder.h"
#include "core/interpreter/transfer.h"
#include "core/ops/library_call.h"
#include "core/tensor/opened_devices.h"

namespace tenon::library {
namespace {

HostTensor seen(const Tensor& tensor) {
  HostTensor made;
  made.dtype = tensor.dtype();
  made.dims = tensor.dims();
  if (tensor.elements() > 0) made.data = tensor.data();
  return made;
}

}  // namespace

void run_on_host(const OpCall& call, const std::function<void(HostTensors in, HostTensors out)>& function) {
  DeviceState* const device = value_or_throw(device_of(call));
  DeviceState* const host = value_or_throw(host_device_state());
  const InterpreterScope scope(eager_interpreter());
  std::vector<TensorMeta> metas;
  throw_if_error(infer_outputs(call, &metas));
  uint64_t moved = 0;
  TensorList inputs(call.inputs.size());
  std::vector<HostTensor> in(inputs.size()), out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (call.inputs[i] == nullptr) continue;
    inputs[i] = transfer(*call.inputs[i], host, &moved);
    if (!inputs[i].contiguous()) inputs[i] = dense_copy(inputs[i]);
    in[i] = seen(inputs[i]);
  }
  TensorList made;
  for (const TensorMeta& meta : metas)
    out.push_back(seen(made.emplace_back(Tensor::empty(meta.dims, meta.dtype, Device(host)))));
  function(in, out);
  for (size_t i = 0; i < made.size(); ++i) {
    if (call.outputs[i].defined()) {
      moved += store_into_view(call.outputs[i], made[i]);
    } else {
      call.outputs[i] = transfer(made[i], device, &moved);
    }
  }
  count_moved(moved);
}

}  // namespace tenon::library
