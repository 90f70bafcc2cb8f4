// prepare: the sizes of a graph become numbers, and its nodes become steps.
#include "core/device/device_state.h"
#include "core/graph/execute/executable.h"
#include "core/graph/execute/islands.h"
#include "core/graph/execute/liveness.h"
#include "core/interpreter/inference.h"
#include "core/ops/attributes.h"
#include "core/ops/op_rows.h"
#include "core/tensor/factory.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

class Preparation {
 public:
  Preparation(const Graph& graph, symbolic::Values* sizes) : graph_(graph), sizes_(sizes) {}

  Executable run() {
    made_.values.resize(graph_.value_count());
    for (size_t i = 0; i < graph_.labels().size(); ++i) made_.labels.add(graph_.labels()[i]);
    made_.inputs.assign(graph_.inputs().begin(), graph_.inputs().end());
    made_.outputs.assign(graph_.outputs().begin(), graph_.outputs().end());
    for (ValueId id = 1; id < graph_.value_count(); ++id) place(id);
    for (NodeId id = graph_.first(); id != kNoNode; id = graph_.next(id)) add(graph_.node(id));
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

  Step step_of(const Node& node) {
    Step step;
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
    return step;
  }

  void add(const Node& node) {
    Step step = step_of(node);
    if (node.op->form == OpForm::view) return add_view(std::move(step));
    const StepCall call(made_, step);
    std::vector<TensorMeta> metas;
    throw_if_error(infer_outputs(call.call(), &metas));
    for (size_t i = 0; i < metas.size(); ++i) give(step.outputs[i], node, std::move(metas[i]));
    made_.steps.push_back(std::move(step));
  }

  // The strides of a pass or of a layout may be others than those that were recorded, and may not allow the view.
  void add_view(Step step) {
    TensorImpl view;
    const auto look = [&] { return step.op->view(StepCall(made_, step).call(), &view); };
    if (!look().ok()) {
      step.inputs[0] = row_major(step);
      throw_if_error(look());
    }
    Slot& slot = made_.values[step.outputs[0]];
    slot.device = made_.values[step.inputs[0]].device;
    slot.meta = {view.dtype, view.dims, view.strides};
    made_.steps.push_back(std::move(step));
  }

  // A row-major copy of the input of `view`.
  uint32_t row_major(const Step& view) {
    const Slot from = made_.values[view.inputs[0]];
    const auto id = static_cast<uint32_t>(made_.values.size());
    made_.values.push_back(
        {{from.meta.dtype, from.meta.dims, contiguous_strides(from.meta.dims)}, from.device, Tensor()});
    CastAttributes attributes{};
    attributes.dtype = from.meta.dtype;
    attributes.row_major = 1;
    Step copy;
    copy.op = &op_row(OpId::cast);
    copy.inputs = {view.inputs[0]};
    copy.attributes.resize((sizeof attributes + 7) / 8);
    std::memcpy(copy.attributes.data(), &attributes, sizeof attributes);
    copy.outputs = {id};
    copy.precision = view.precision;
    copy.label = view.label;
    made_.steps.push_back(std::move(copy));
    return id;
  }

  // Checks the rule over numbers against the rule over expressions.
  void give(uint32_t id, const Node& node, TensorMeta meta) {
    const Dims expected = value_or_throw(sizes_->of(node.op->name, graph_[id].dims));
    if (!(expected == meta.dims) || meta.dtype != graph_[id].dtype) {
      throw Error(Code::internal,
                  fmt::format("{}: its result is {} {} by its rule, but {} {} in the graph.", node.op->name,
                              dtype_name(meta.dtype), meta.dims, dtype_name(graph_[id].dtype), expected));
    }
    made_.values[id].device = graph_[id].device;
    made_.values[id].meta = std::move(meta);
  }

  const Graph& graph_;
  symbolic::Values* sizes_;
  Executable made_;
};

}  // namespace

StepCall::StepCall(const Executable& executable, const Step& step)
    : inputs_(step.inputs.size()), outputs_(step.outputs.size()) {
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const Slot& slot = executable.values[step.inputs[i]];
    if (step.inputs[i] != 0) inputs_[i] = make_meta(slot.device, slot.meta);
    pointers_.push_back(step.inputs[i] == 0 ? nullptr : &inputs_[i]);
  }
  call_.op = step.op;
  call_.inputs = pointers_;
  call_.scalars = step.scalars;
  call_.attributes = step.attributes.data();
  call_.device = step.device;
  call_.outputs = outputs_;
  call_.precision = step.precision;
  call_.epilogues = step.epilogues;
}

Executable prepare(const Graph& graph, symbolic::Values* sizes, const PrepareOptions& options) {
  throw_if_error(sizes->check());
  Executable made = Preparation(graph, sizes).run();
  if (options.whole_graphs) take_islands(&made);
  find_last_uses(&made);
  return made;
}

Executable prepare(const Graph& graph, const PrepareOptions& options) {
  symbolic::Values none(graph.arena());
  return prepare(graph, &none, options);
}

}  // namespace tenon::graph
