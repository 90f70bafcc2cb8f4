// prepare: the sizes of a graph become numbers, and its nodes become steps.
#include "core/device/device_state.h"
#include "core/graph/execute/executable.h"
#include "core/graph/execute/islands.h"
#include "core/graph/execute/liveness.h"
#include "core/graph/execute/regions.h"
#include "core/graph/execute/resize.h"
#include "core/graph/execute/rungs.h"
#include "core/graph/execute/schedule.h"
#include "core/graph/execute/steps.h"
#include "core/ops/op_call.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

class Preparation {
 public:
  Preparation(const Graph& graph, symbolic::Values* sizes, const PrepareOptions& options)
      : graph_(graph), sizes_(sizes), options_(options) {}

  Executable run(std::span<const ValueId> outputs) {
    made_.steps.reserve(graph_.size());
    made_.values.resize(graph_.value_count());
    for (size_t i = 0; i < graph_.labels().size(); ++i) made_.labels->add(graph_.labels()[i]);
    made_.inputs.assign(graph_.inputs().begin(), graph_.inputs().end());
    made_.outputs.assign(outputs.begin(), outputs.end());
    made_.over = options_.over;
    made_.over.resize(made_.outputs.size(), kNoInput);
    for (ValueId id = 1; id < graph_.value_count(); ++id) place(id);
    for (NodeId id = graph_.first(); id != kNoNode; id = graph_.next(id)) add(id, graph_.node(id));
    return std::move(made_);
  }

 private:
  // Inputs and constants; results come with their nodes.
  void place(ValueId id) {
    const Value& value = graph_[id];
    Slot& slot = made_.values[id];
    slot.device = value.device;
    slot.constant = value.constant;
    if (value.constant.defined()) {
      slot.meta = {value.dtype, value.constant.dims(), value.constant.strides()};
    } else if (value.producer == kNoNode && value.dtype != DType::none) {
      const Dims dims = value_or_throw(sizes_->of("input", value.dims));
      slot.meta = {value.dtype, dims, contiguous_strides(dims)};
    }
  }

  Step step_of(NodeId id, const Node& node) {
    Step step;
    step.node = id;
    step.op = node.op;
    step.inputs = node.inputs;
    step.scalars = node.scalars;
    step.attributes = node.attributes;
    for (const Patch& patch : node.patches) {
      step.attributes[patch.word] = static_cast<uint64_t>(value_or_throw(sizes_->of(patch.size)));
    }
    step.epilogues = node.epilogues;
    step.device = node.device;
    step.outputs = node.results;
    step.precision = node.precision;
    step.label = node.label;
    if (!node.regions.empty()) step.regions = prepare_regions(graph_, node, sizes_, options_);
    return step;
  }

  void add(NodeId id, const Node& node) {
    std::vector<Dims> expected;  // before the rule over numbers looks: these errors name the symbols
    for (uint32_t result : node.results) {
      made_.values[result].device = graph_[result].device;
      expected.push_back(value_or_throw(sizes_->of(node.op->name, graph_[result].dims)));
    }
    add_step(&made_, step_of(id, node));
    if (node.op->form == OpForm::view) return;
    for (size_t i = 0; i < expected.size(); ++i) check(node, node.results[i], expected[i]);
  }

  // Checks the rule over numbers against the rule over expressions.
  void check(const Node& node, uint32_t id, const Dims& expected) {
    const TensorMeta& meta = made_.values[id].meta;
    if (expected == meta.dims && meta.dtype == graph_[id].dtype) return;
    throw Error(Code::internal,
                fmt::format("{}: its result is {} {} by its rule, but {} {} in the graph.", node.op->name,
                            dtype_name(meta.dtype), meta.dims, dtype_name(graph_[id].dtype), expected));
  }

  const Graph& graph_;
  symbolic::Values* sizes_;
  const PrepareOptions& options_;
  Executable made_;
};

}  // namespace

Executable prepare(const Graph& graph, symbolic::Values* sizes, const PrepareOptions& options) {
  return prepare_outputs(graph, graph.outputs(), sizes, options);
}

Executable prepare_outputs(const Graph& graph, std::span<const ValueId> outputs, symbolic::Values* sizes,
                           const PrepareOptions& options) {
  const InterpreterScope eager(eager_interpreter());
  throw_if_error(sizes->check());
  if (options.like != nullptr) {
    if (std::optional<Executable> made = resize(graph, sizes, *options.like, options.packed)) return *std::move(made);
  }
  Executable made = Preparation(graph, sizes, options).run(outputs);
  if (options.whole_graphs) take_islands(&made);
  if (options.scheduled) choose_rungs(&made, options.packed);
  find_last_uses(&made);
  if (options.scheduled) made.schedule = make_schedule(made, Roots(made));
  return made;
}

Executable prepare(const Graph& graph, const PrepareOptions& options) {
  symbolic::Values none(graph.arena());
  return prepare(graph, &none, options);
}

}  // namespace tenon::graph
