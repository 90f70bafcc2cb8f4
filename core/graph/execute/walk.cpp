#include "core/graph/execute/walk.h"

#include <string>

#include "core/device/device_state.h"
#include "core/graph/execute/check_kernels.h"
#include "core/graph/execute/regions.h"
#include "core/interpreter/device_graph.h"
#include "core/tensor/factory.h"
#include "primitives/text/format.h"

namespace tenon::graph {

TensorList StepRunner::run(const Step& step, std::span<const Tensor* const> inputs) {
  const LabelScope label((*program_.labels)[step.label]);
  try {
    if (executions_ == nullptr) return apply(step, inputs);
    ExecutionScope scope;
    TensorList results = apply(step, inputs);
    for (ExecutionEntry& entry : scope.take()) {
      if (!step.alone.empty()) entry.reason += fmt::format("{}alone: {}", entry.reason.empty() ? "" : "; ", step.alone);
      executions_->push_back({step.label, std::move(entry), {}});
    }
    for (const ExecutionEntry& entry : step.ends) executions_->push_back({step.label, entry, {}});
    return results;
  } catch (const Error& error) {
    // A fault inside an island already has the label of its node.
    if (step.island != nullptr && error.code() == Code::invalid_argument) throw;
    throw Error(with_label(error.status(), (*program_.labels)[step.label], device_of(step, inputs)));
  }
}

std::string StepRunner::device_of(const Step& step, std::span<const Tensor* const> inputs) const {
  for (const Tensor* input : inputs) {
    if (input != nullptr && input->defined()) return input->device().spelling();
  }
  return step.device != nullptr ? step.device->opened->spelling : Device::current().spelling();
}

TensorList StepRunner::apply(const Step& step, std::span<const Tensor* const> inputs) {
  const bool launches_kernel = step.fused != nullptr && &interpreter_ == &eager_interpreter() && checks_kernels();
  if (launches_kernel) return run_checked(program_, step, inputs);
  if (step.regions != nullptr) return run_regions(*step.regions, inputs);
  return step.island != nullptr ? launch(step, inputs) : apply_op(step, inputs);
}

TensorList StepRunner::launch(const Step& step, std::span<const Tensor* const> inputs) {
  return launch_graph(step.island, inputs, step.island_inputs, step.island_outputs);
}

TensorList StepRunner::apply_op(const Step& step, std::span<const Tensor* const> inputs) {
  TensorList results(step.outputs.size());
  if (step.stated_order) {
    for (size_t i = 0; i < results.size(); ++i) {
      const Slot& slot = program_.values[step.outputs[i]];
      results[i] = value_or_throw(make_tensor(slot.device, slot.meta.dtype, slot.meta.dims, slot.meta.strides));
    }
  }
  OpCall call;
  call.op = step.op;
  call.inputs = inputs;
  call.scalars = step.scalars;
  call.attributes = step.attributes.data();
  call.device = step.device;
  call.outputs = results;
  call.precision = step.precision;
  call.epilogues = step.epilogues;
  interpreter_.apply(call);
  return results;
}

TensorList walk(const Executable& program, Interpreter& interpreter, std::span<const Tensor> inputs,
                std::vector<StepExecution>* executions) {
  std::vector<Tensor> values(program.values.size());
  const auto get = [&](uint32_t id) -> const Tensor& {
    const Tensor& constant = program.values[id].constant;
    return constant.defined() ? constant : values[id];
  };
  for (size_t i = 0; i < inputs.size(); ++i) values[program.inputs[i]] = inputs[i];
  StepRunner runner(program, interpreter, executions);
  std::vector<const Tensor*> pointers;
  for (const Step& step : program.steps) {
    pointers.clear();
    for (uint32_t id : step.inputs) pointers.push_back(id == 0 ? nullptr : &get(id));
    TensorList results = runner.run(step, pointers);
    for (size_t i = 0; i < results.size(); ++i) values[step.outputs[i]] = std::move(results[i]);
    for (uint32_t id : step.drops) values[id] = Tensor();
  }
  TensorList outputs;
  for (uint32_t id : program.outputs) outputs.push_back(get(id));
  return outputs;
}

}  // namespace tenon::graph
