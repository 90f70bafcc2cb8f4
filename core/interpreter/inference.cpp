#include "core/interpreter/inference.h"

#include "core/interpreter/order.h"
#include "core/tensor/device.h"
#include "core/vm/call_note.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

// The op that the user called.
const OpName& written(const OpCall& call) { return call_site.called != nullptr ? *call_site.called : call.op->named; }

// "cpu:0 (argument 'input')": the device and name of tensor `index`, counting the inputs and then the outputs of
// `call`.
std::string position(const OpCall& call, const Tensor& tensor, size_t index) {
  const std::string device = tensor.device().spelling();
  const auto names = written(call).arguments;
  if (index >= call.inputs.size()) return fmt::format("{} (output {})", device, index - call.inputs.size());
  return index < names.size() ? fmt::format("{} (argument '{}')", device, names[index]) : device;
}

// The error of a call whose tensors are on several devices. It names the first two that differ.
Status several_devices(const OpCall& call) {
  const Tensor* first = nullptr;
  size_t first_index = 0;
  const size_t input_count = call.inputs.size();
  for (size_t i = 0; i < input_count + call.outputs.size(); ++i) {
    const Tensor* tensor = i < input_count ? call.inputs[i] : &call.outputs[i - input_count];
    if (tensor == nullptr || !tensor->defined()) continue;
    if (first == nullptr) {
      first = tensor;
      first_index = i;
    } else if (tensor->impl()->device != first->impl()->device) {
      return Status(Subject{written(call).op}, Code::invalid_argument,
                    fmt::format("expected all tensors to be on the same device, but found {} and {}.",
                                position(call, *first, first_index), position(call, *tensor, i)),
                    "Move one of them with to(device).");
    }
  }
  return {};
}

Status check_given(const OpCall& call, size_t index, const TensorMeta& meta) {
  const Tensor& given = call.outputs[index];
  if (given.dtype() != meta.dtype || !(given.dims() == meta.dims)) {
    return Status(Subject{call.op->name}, Code::invalid_argument,
                  fmt::format("output {} is {} {}, but the result is {} {}.", index, dtype_name(given.dtype()),
                              given.dims(), dtype_name(meta.dtype), meta.dims));
  }
  for (int32_t axis = 0; axis < given.rank(); ++axis) {
    if (given.dims()[axis] > 1 && given.strides()[axis] == 0) {
      return Status(Subject{call.op->name}, Code::invalid_argument,
                    fmt::format("output {} of shape {} is an expanded view: several of its elements share one "
                                "place in memory (axis {} has stride 0), so it cannot be written.",
                                index, given.dims(), axis),
                    "Write into a copy made with contiguous().");
    }
  }
  return {};
}

}  // namespace

Result<DeviceState*> device_of(const OpCall& call) {
  DeviceState* found = nullptr;
  bool several = false;
  const auto see = [&](const Tensor* tensor) {
    if (tensor == nullptr || !tensor->defined()) return;
    if (found == nullptr) found = tensor->impl()->device;
    several = several || tensor->impl()->device != found;
  };
  for (const Tensor* input : call.inputs) see(input);
  for (const Tensor& output : call.outputs) see(&output);
  if (several) [[unlikely]]
    return several_devices(call);
  if (found != nullptr) return found;
  if (call.device != nullptr) return call.device;
  return Device::current().state();
}

Status infer_outputs(const OpCall& call, std::vector<TensorMeta>* outputs) {
  outputs->resize(call.outputs.size());
  return infer_outputs(call, outputs->data());
}

Status infer_outputs(const OpCall& call, TensorMeta* outputs) {
  TENON_RETURN_IF_ERROR(call.op->infer(call, outputs));
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    TensorMeta& meta = outputs[i];
    if (!call.outputs[i].defined()) {
      if (call.op->form == OpForm::builtin && meta.strides.rank() == meta.dims.rank()) continue;
      meta.strides = result_strides(call, meta.dims);
      continue;
    }
    TENON_RETURN_IF_ERROR(check_given(call, i, meta));
    meta.strides = call.outputs[i].strides();
  }
  return {};
}

std::string describe(const OpCall& call) { return std::string(call.op->name) + arguments_text(call); }

std::string arguments_text(const OpCall& call) {
  std::vector<int64_t> inputs;
  note_call(&call, &inputs);
  return vm::arguments_text(inputs);
}

void note_call(const void* call, std::vector<int64_t>* inputs) {
  inputs->clear();
  for (const Tensor* input : static_cast<const OpCall*>(call)->inputs) {
    if (input == nullptr) {
      inputs->push_back(-1);
      continue;
    }
    const TensorImpl& impl = *input->impl();
    inputs->push_back(vm::input_word(static_cast<int32_t>(impl.dtype), impl.dims.rank()));
    inputs->insert(inputs->end(), impl.dims.begin(), impl.dims.end());
  }
}

}  // namespace tenon
