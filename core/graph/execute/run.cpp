#include <algorithm>

#include "core/device/device_state.h"
#include "core/graph/execute/executable.h"
#include "core/interpreter/device_graph.h"
#include "core/ops/ops.h"
#include "loader/loader.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

class Runner {
 public:
  Runner(const Executable& program, std::vector<StepExecution>* executions)
      : program_(program),
        executions_(executions),
        values_(program.values.size()),
        interpreter_(current_interpreter()) {}

  Tensor& operator[](uint32_t id) { return values_[id]; }
  const Tensor& get(uint32_t id) const {
    const Tensor& constant = program_.values[id].constant;
    return constant.defined() ? constant : values_[id];
  }

  void run(const Step& step) {
    const LabelScope label(program_.labels[step.label]);
    try {
      if (executions_ == nullptr) return apply(step);
      ExecutionScope scope;
      apply(step);
      for (ExecutionEntry& entry : scope.take()) {
        if (!step.alone.empty())
          entry.reason += fmt::format("{}alone: {}", entry.reason.empty() ? "" : "; ", step.alone);
        executions_->push_back({step.label, std::move(entry)});
      }
    } catch (const Error& error) {
      // A fault inside an island has the label of its node.
      if (step.island != nullptr && error.code() == Code::invalid_argument) throw;
      throw Error(with_label(error.status(), program_.labels[step.label], device_of(step)));
    }
  }

 private:
  std::string device_of(const Step& step) const {
    for (uint32_t id : step.inputs) {
      if (id != 0 && get(id).defined()) return get(id).device().spelling();
    }
    return step.device != nullptr ? step.device->opened->spelling : Device::current().spelling();
  }

  void apply(const Step& step) {
    if (step.island != nullptr) {
      launch(step);
    } else {
      apply_op(step);
    }
    for (uint32_t id : step.drops) values_[id] = Tensor();
  }

  void launch(const Step& step) {
    pointers_.clear();
    std::vector<TensorMeta> inputs, outputs;
    for (uint32_t id : step.inputs) {
      pointers_.push_back(&get(id));
      inputs.push_back(program_.values[id].meta);
    }
    for (uint32_t id : step.outputs) outputs.push_back(program_.values[id].meta);
    results_ = launch_graph(step.island, pointers_, inputs, outputs);
    for (size_t i = 0; i < results_.size(); ++i) values_[step.outputs[i]] = std::move(results_[i]);
  }

  void apply_op(const Step& step) {
    pointers_.clear();
    for (uint32_t id : step.inputs) pointers_.push_back(id == 0 ? nullptr : &get(id));
    results_.resize(step.outputs.size());
    for (size_t i = 0; i < results_.size(); ++i) results_[i] = Tensor();
    OpCall call;
    call.op = step.op;
    call.inputs = pointers_;
    call.scalars = step.scalars;
    call.attributes = step.attributes.data();
    call.device = step.device;
    call.outputs = results_;
    call.precision = step.precision;
    call.epilogues = step.epilogues;
    interpreter_.apply(call);
    for (size_t i = 0; i < results_.size(); ++i) values_[step.outputs[i]] = std::move(results_[i]);
  }

  const Executable& program_;
  std::vector<StepExecution>* executions_;
  std::vector<Tensor> values_;
  Interpreter& interpreter_;
  std::vector<const Tensor*> pointers_;
  std::vector<Tensor> results_;
};

}  // namespace

TensorList run(const Executable& program, std::span<const Tensor> inputs, std::span<const Tensor> bound,
               std::vector<StepExecution>* executions) {
  if (inputs.size() != program.inputs.size()) {
    throw Error(Code::invalid_argument,
                fmt::format("The program has {} inputs, but {} were given.", program.inputs.size(), inputs.size()));
  }
  Runner runner(program, executions);
  for (size_t i = 0; i < inputs.size(); ++i) runner[program.inputs[i]] = contiguous(inputs[i]);
  for (const Step& step : program.steps) runner.run(step);
  TensorList outputs;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    Tensor result = runner.get(program.outputs[i]);
    if (i < bound.size() && bound[i].defined()) {
      Tensor target = bound[i];
      copy_(target, result);
      result = target;
    }
    outputs.push_back(std::move(result));
  }
  return outputs;
}

}  // namespace tenon::graph
