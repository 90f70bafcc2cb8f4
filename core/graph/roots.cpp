#include "core/graph/roots.h"

#include "core/device/device_state.h"
#include "core/tensor/factory.h"

namespace tenon::graph {
namespace {

// Where `view`, a step of a view of the value at `source`, puts its result; the result itself is its root if that
// fails.
RootView view_of_root(const StepCall& view, const RootView& source, uint32_t result) {
  TensorImpl impl;
  const Status status = view.call().op->view(view.call(), &impl);
  if (!status.ok() || impl.dtype != view.call().inputs[0]->dtype()) return {result, 0};
  return {source.root, source.offset + impl.offset};
}

}  // namespace

StepCall::StepCall(const Graph& graph, const Step& step, const std::vector<DeviceState*>& devices)
    : inputs_(step.inputs.size()), outputs_(step.outputs.size()) {
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const uint32_t id = step.inputs[i];
    if (id != 0) inputs_[i] = make_meta(devices[id], graph.values[id].meta);
    pointers_.push_back(id == 0 ? nullptr : &inputs_[i]);
  }
  call_.op = step.op;
  call_.inputs = pointers_;
  call_.scalars = step.scalars;
  call_.attributes = step.attributes.data();
  call_.device = step.device;
  call_.outputs = outputs_;
  call_.precision = step.precision;
}

Roots::Roots(const Graph& graph, DeviceState* device)
    : roots_(graph.values.size()), devices_(graph.values.size(), device), written_again_(graph.values.size(), false) {
  for (uint32_t id = 0; id < graph.values.size(); ++id) {
    roots_[id].root = id;
    const Tensor& constant = graph.values[id].constant;
    if (constant.defined()) devices_[id] = constant.impl()->device;
  }
  for (const Step& step : graph.steps) {
    DeviceState* where = step.device;
    for (size_t i = 0; where == nullptr && i < step.inputs.size(); ++i) {
      if (step.inputs[i] != 0) where = devices_[step.inputs[i]];
    }
    for (uint32_t id : step.outputs) {
      if (step.in_place) {
        written_again_[roots_[id].root] = true;
      } else {
        devices_[id] = where;
      }
    }
    if (step.op->form != OpForm::view || step.in_place) continue;
    const uint32_t source = step.inputs[0], result = step.outputs[0];
    roots_[result] = view_of_root(StepCall(graph, step, devices_), roots_[source], result);
  }
}

}  // namespace tenon::graph
