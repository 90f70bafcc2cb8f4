#include "core/interpreter/probe.h"

#include <memory>
#include <string>
#include <vector>

#include "core/interpreter/inference.h"
#include "core/interpreter/prepared.h"
#include "core/ops/decompose/decompose.h"
#include "core/tensor/factory.h"

namespace tenon {
namespace {

// Returns tensors without data for every op, and refuses ops for which the device has no primitive.
class ProbeInterpreter final : public Interpreter {
 public:
  explicit ProbeInterpreter(DeviceState* device) : device_(device) {}

  void apply(const OpCall& call) override {
    if (call.op->form == OpForm::view) {
      TensorImpl view;
      throw_if_error(call.op->view(call, &view));
      call.outputs[0] = make_meta(device_, {view.dtype, view.dims, view.strides});
      return;
    }
    if (call.op->form == OpForm::composite) return compose(call, *this);
    if (call.op->form == OpForm::builtin) return answer_builtin(call);
    OpCall probed = call;
    probed.device = device_;
    const Result<std::unique_ptr<Prepared>> prepared = prepare(probed, device_, Reach::native_only);
    // A product is decomposed step by step: first its epilogues, then its bias.
    const bool product = call.op->kind == EP_PRIMITIVE_matmul || call.op->kind == EP_PRIMITIVE_convolution;
    if (!prepared.ok() && prepared.status().code() == Code::unsupported && product && ops::has_decomposition(probed)) {
      return ops::decompose(probed);
    }
    throw_if_error(prepared.status());
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (!call.outputs[i].defined()) call.outputs[i] = make_meta(device_, prepared.value()->outputs[i]);
    }
  }

  std::string name() const override { return "the probe of a decomposition"; }
  bool host_value_known(const Tensor&) override { return false; }

 private:
  void answer_builtin(const OpCall& call) {
    std::vector<TensorMeta> outputs;
    throw_if_error(infer_outputs(call, &outputs));
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (!call.outputs[i].defined())
        call.outputs[i] = make_meta(call.device == nullptr ? device_ : call.device, outputs[i]);
    }
  }

  DeviceState* device_;
};

Tensor without_data(const Tensor& tensor) {
  return make_meta(tensor.impl()->device, {tensor.dtype(), tensor.dims(), tensor.strides()});
}

}  // namespace

Status probe_decomposition(const OpCall& call) {
  Tensor inputs[EP_MAX_OPERANDS];
  const Tensor* pointers[EP_MAX_OPERANDS] = {};
  Tensor outputs[EP_MAX_OPERANDS];
  DeviceState* device = call.device;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] == nullptr) continue;
    inputs[i] = without_data(*call.inputs[i]);
    pointers[i] = &inputs[i];
    device = inputs[i].impl()->device;
  }
  if (device == nullptr) return Status(Code::unsupported, "no tensor argument determines its device.");
  OpCall probed = call;
  probed.device = device;
  probed.inputs = {pointers, call.inputs.size()};
  probed.outputs = {outputs, call.outputs.size()};
  ProbeInterpreter probe(device);
  InterpreterScope scope(probe);
  const PrecisionScope precision(call.precision);
  try {
    ops::decompose(probed);
  } catch (const Error& error) {
    const bool refused = error.code() == Code::unsupported || error.code() == Code::invalid_argument;
    return refused ? Status(Code::unsupported, error.what()) : error.status();
  }
  return {};
}

}  // namespace tenon
