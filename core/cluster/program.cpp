#include "core/cluster/program.h"

#include <algorithm>
#include <utility>

#include "core/autograd/autograd.h"
#include "core/autograd/interpreter.h"
#include "core/graph/execute/executable.h"
#include "core/graph/recorder.h"
#include "core/ops/control.h"
#include "core/ops/decompose/decompose.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"
#include "core/tensor/factory.h"
#include "primitives/text/format.h"

namespace tenon::cluster {
namespace {

// Passes a product on to `below` without its epilogues, and then the epilogues, which rules of signatures do not know.
class Plain final : public Interpreter {
 public:
  explicit Plain(Interpreter& below) : below_(below) {}
  std::string name() const override { return below_.name(); }
  bool keeps(const OpInfo& op) const override { return below_.keeps(op); }
  bool host_value_known(const Tensor& tensor) override { return below_.host_value_known(tensor); }
  void apply(const OpCall& call) override {
    if (call.epilogues.empty()) return below_.apply(call);
    ops::decompose(call);
  }

 private:
  Interpreter& below_;
};

// A copy of `given` in which every constant of more than one element is an input after the others.
graph::Graph with_inputs(const graph::Graph& given, std::vector<std::pair<ValueId, Tensor>>* constants) {
  graph::Graph copy = given.copy();
  for (ValueId id = 1; id < given.value_count(); ++id) {
    const graph::Value& value = given[id];
    if (!value.constant.defined() || value.constant.elements() <= 1 || value.uses.empty()) continue;
    SymDims dims;
    for (const int64_t dim : value.constant.dims()) dims.push_back(dim);
    copy.replace(id, copy.add_input(value.dtype, dims, value.device));
    constants->emplace_back(id, value.constant);
  }
  return copy;
}

}  // namespace

Program::Program(const graph::Graph& given, symbolic::Values* sizes, const ProgramOptions& options) {
  record(given, sizes, options);
  read_graph();
}

void Program::record(const graph::Graph& given, symbolic::Values* sizes, const ProgramOptions& options) {
  std::vector<std::pair<ValueId, Tensor>> constants;
  const graph::Graph open = with_inputs(given, &constants);
  const graph::PrepareOptions unscheduled{.whole_graphs = false, .scheduled = false, .packed = false, .fuse = false};
  const graph::Executable executable = graph::prepare(open, sizes, unscheduled);
  const size_t own = given.inputs().size();
  graph::Recorder recorder(
      Device(executable.inputs.empty() ? Device::current().state() : executable.values[executable.inputs[0]].device));
  Plain plain(recorder);
  autograd::GradientInterpreter gradients(plain);
  const InterpreterScope scope(options.train ? static_cast<Interpreter&>(gradients) : plain);
  TensorList inputs, parameters;
  std::vector<size_t> numbers;  // numbers of the parameters
  for (size_t i = 0; i < executable.inputs.size(); ++i) {
    const graph::Slot& slot = executable.values[executable.inputs[i]];
    Tensor input = recorder.input(slot.meta.dtype, slot.meta.dims, Device(slot.device));
    Value fact;
    fact.is_input = true;
    fact.name = i < own ? fmt::format("input {}", i) : fmt::format("constant %{}", constants[i - own].first);
    if (i >= own) fact.elements = constants[i - own].second;
    const bool listed = std::find(options.parameters.begin(), options.parameters.end(), i) != options.parameters.end();
    fact.is_parameter = is_floating(slot.meta.dtype) && (i >= own || listed);
    if (options.train && fact.is_parameter) {
      input.requires_grad_();
      parameters.push_back(input);
      numbers.push_back(i);
    }
    facts_.push_back(std::move(fact));
    inputs.push_back(std::move(input));
  }
  TensorList results = graph::run(executable, inputs);
  homes_.assign(results.size(), std::nullopt);
  if (options.train) {
    if (results.empty() || !is_floating(results[0].dtype()) || parameters.empty()) {
      throw Error(Code::unsupported, "A step of training needs a floating result and parameters.",
                  "Floating constants of a graph are its parameters.");
    }
    const Tensor loss = results[0].elements() == 1 ? tenon::reshape(results[0], {}) : tenon::mean(results[0]);
    const TensorList made = tenon::grad({loss}, parameters, {}, {.allow_unused = true});
    const NoGrad off;
    results = {loss};
    homes_ = {std::nullopt};
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!made[i].defined()) continue;
      results.push_back(tenon::sub(parameters[i].detach(), tenon::mul(made[i], options.rate)));
      homes_.emplace_back(numbers[i]);
    }
  }
  graph_ = recorder.finish(results);
}

void Program::read_graph() {
  values_.resize(graph_.value_count());
  for (ValueId id = 1; id < graph_.value_count(); ++id) {
    Value& value = values_[id];
    value.dtype = graph_[id].dtype;
    value.home = id;
    for (const SymDim dim : graph_[id].dims) value.dims.push_back(dim.number());
  }
  inputs_.assign(graph_.inputs().begin(), graph_.inputs().end());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Value& value = values_[inputs_[i]];
    value.name = facts_[i].name;
    value.is_parameter = facts_[i].is_parameter;
    value.is_input = true;
    value.elements = facts_[i].elements;
  }
  results_.assign(graph_.outputs().begin(), graph_.outputs().end());
  for (size_t i = 0; i < results_.size(); ++i) {
    Value& value = values_[results_[i]];
    value.is_result = true;
    if (homes_[i] && !value.is_input) value.home = inputs_[*homes_[i]];
  }
  for (NodeId id = graph_.first(); id != graph::kNoNode; id = graph_.next(id)) {
    const graph::Node& node = graph_.node(id);
    if (!node.regions.empty()) {
      throw Error(Code::unsupported,
                  fmt::format("A plan cannot contain control flow, but {} depends on data.", node.op->name));
    }
    calls_.push_back({&node, node.inputs, node.results});
    for (const ValueId input : node.inputs) values_[input].read = true;
  }
}

MetaCall::MetaCall(const Program& program, const Program::Call& call)
    : inputs_(call.inputs.size()), outputs_(call.outputs.size()) {
  const auto meta_of = [&](ValueId id) {
    const Program::Value& value = program.values()[id];
    return TensorMeta{value.dtype, value.dims, contiguous_strides(value.dims)};
  };
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const ValueId id = call.inputs[i];
    if (id != 0) inputs_[i] = make_meta(program.graph()[id].device, meta_of(id));
    pointers_.push_back(id == 0 ? nullptr : &inputs_[i]);
  }
  for (const ValueId id : call.outputs) metas_.push_back(meta_of(id));
  call_.op = call.node->op;
  call_.inputs = pointers_;
  call_.scalars = call.node->scalars;
  call_.attributes = call.node->attributes.data();
  call_.device = call.node->device;
  call_.outputs = outputs_;
  call_.precision = call.node->precision;
}

}  // namespace tenon::cluster
