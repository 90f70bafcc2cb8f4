// prepare: evaluates the sizes of a graph and turns its nodes into steps.
#include "core/background/background.h"
#include "core/device/device_state.h"
#include "core/graph/execute/executable.h"
#include "core/graph/execute/islands.h"
#include "core/graph/execute/liveness.h"
#include "core/graph/execute/regions.h"
#include "core/graph/execute/resize.h"
#include "core/graph/execute/rungs.h"
#include "core/graph/execute/schedule.h"
#include "core/graph/execute/steps.h"
#include "core/graph/fusion.h"
#include "core/graph/regions/regions.h"
#include "core/ops/op_call.h"
#include "core/ops/scalar_patch.h"
#include "loader/log/log.h"
#include "loader/settings/settings.h"
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
    for (NodeId id = graph_.first(); id != kNoNode; id = graph_.next(id)) take(id);
    return std::move(made_);
  }

 private:
  // Adds an input or a constant; results are added with their nodes.
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

  // The step of `node` of `graph`. Its inputs and results have the ids of that graph.
  Step step_of(const Graph& graph, const Node& node) {
    Step step;
    step.op = node.op;
    step.inputs = node.inputs;
    step.scalars = node.scalars;
    step.attributes = node.attributes;
    for (const Patch& patch : node.patches) {
      const int64_t value = value_or_throw(sizes_->of(patch.size));
      if (patch.word < kScalarPatch) {
        step.attributes[patch.word] = static_cast<uint64_t>(value);
      } else {
        Scalar& scalar = step.scalars[patch.word - kScalarPatch];
        scalar = is_floating(scalar.dtype()) ? Scalar(static_cast<double>(value)) : Scalar(value);
      }
    }
    step.epilogues = node.epilogues;
    step.device = node.device;
    step.outputs = node.results;
    step.precision = node.precision;
    step.label = node.label;
    if (!node.regions.empty()) step.regions = prepare_regions(graph, node, sizes_, options_);
    return step;
  }

  void take(NodeId id) {
    const Node& node = graph_.node(id);
    if (is_fused(node)) return add_fused(id, node);
    const std::vector<Dims> dims = dims_of(graph_, node);
    Step step = step_of(graph_, node);
    step.node = id;
    add(graph_, node, std::move(step), dims);
  }

  // Adds the kernel that the device has compiled for the node, or the nodes of its region.
  void add_fused(NodeId id, const Node& node) {
    std::string why_not = "fusion is off, or the program is not scheduled";
    Step step;
    const bool wanted = options_.scheduled && options_.fuse.value_or(loader::settings().fuse != loader::Fuse::off);
    if (wanted) step.fused = fused_launch(*node.regions[0], sizes_, options_.awaited, &why_not);
    if (step.fused == nullptr) {
      if (loader::log_enabled(loader::LogTopic::compile, loader::LogLevel::info)) {
        loader::log(loader::LogTopic::compile, loader::LogLevel::info,
                    fmt::format("{}: {}; its nodes run one by one.", graph_.labels()[node.label], why_not));
      }
      return add_parts(id, node);
    }
    step.op = node.op;
    step.inputs = node.inputs;
    step.outputs = node.results;
    step.attributes = node.attributes;
    step.label = node.label;
    step.node = id;
    step.regions = prepare_regions(graph_, node, sizes_, options_);
    add_step(&made_, std::move(step));
  }

  // Adds the nodes of a region that no kernel computes, each as a step.
  void add_parts(NodeId id, const Node& node) {
    const Graph& region = *node.regions[0];
    std::vector<uint32_t> of(region.value_count(), 0);  // by value of the region: its value in the executable
    for (size_t i = 0; i < region.inputs().size(); ++i) of[region.inputs()[i]] = node.inputs[i];
    for (size_t i = 0; i < region.outputs().size(); ++i) {
      const ValueId output = region.outputs()[i];
      if (of[output] == 0 && region[output].producer != kNoNode) of[output] = node.results[i];
    }
    for (ValueId value = 1; value < region.value_count(); ++value) {
      if (of[value] != 0 || region[value].dtype == DType::none) continue;
      Slot slot{{}, region[value].device, region[value].constant};
      if (slot.constant.defined()) slot.meta = {slot.constant.dtype(), slot.constant.dims(), slot.constant.strides()};
      of[value] = add_value(&made_, std::move(slot));
    }
    for (NodeId part = region.first(); part != kNoNode; part = region.next(part)) {
      const std::vector<Dims> dims = dims_of(region, region.node(part));
      Step step = step_of(region, region.node(part));
      for (uint32_t& input : step.inputs) input = of[input];
      for (uint32_t& output : step.outputs) output = of[output];
      step.label = label_of(node, region.node(part), region);
      step.node = id;
      step.derived = true;
      add(region, region.node(part), std::move(step), dims);
    }
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (of[region.outputs()[i]] == node.results[i]) continue;
      Step like;
      like.label = node.label;
      like.node = id;
      Step copy = copy_step(made_, of[region.outputs()[i]], like);
      copy.outputs = {node.results[i]};
      made_.values[node.results[i]].device = graph_[node.results[i]].device;
      add_step(&made_, std::move(copy));
    }
  }

  uint32_t label_of(const Node& node, const Node& part, const Graph& region) {
    if (part.label == 0) return node.label;
    made_.labels->add(region.labels()[part.label]);
    return static_cast<uint32_t>(made_.labels->size() - 1);
  }

  // The dims of the results of `node`. They are evaluated before the rule over numbers runs, because these errors name
  // the symbols.
  std::vector<Dims> dims_of(const Graph& graph, const Node& node) {
    std::vector<Dims> dims;
    for (const ValueId id : node.results) dims.push_back(value_or_throw(sizes_->of(node.op->name, graph[id].dims)));
    return dims;
  }

  void add(const Graph& graph, const Node& node, Step step, const std::vector<Dims>& expected) {
    const std::vector<uint32_t> results = step.outputs;
    for (size_t i = 0; i < results.size(); ++i) made_.values[results[i]].device = graph[node.results[i]].device;
    add_step(&made_, std::move(step));
    if (node.op->form == OpForm::view) return;
    for (size_t i = 0; i < expected.size(); ++i) check(node, results[i], graph[node.results[i]].dtype, expected[i]);
  }

  // Checks that the rule over numbers agrees with the rule over expressions.
  void check(const Node& node, uint32_t id, DType dtype, const Dims& expected) {
    const TensorMeta& meta = made_.values[id].meta;
    if (expected == meta.dims && meta.dtype == dtype) return;
    throw Error(Subject{node.op->name}, Code::internal,
                fmt::format("its result is {} {} by its rule, but {} {} in the graph.", dtype_name(meta.dtype),
                            meta.dims, dtype_name(dtype), expected));
  }

  const Graph& graph_;
  symbolic::Values* sizes_;
  const PrepareOptions& options_;
  Executable made_;
};

}  // namespace

// True if kernels are or were awaited for some steps, so that another preparation may use them.
static bool awaits(const Executable& executable) {
  const AwaitedKernels* awaited = executable.awaited.get();
  return awaited != nullptr && (awaited->left.load(std::memory_order_acquire) != 0 || awaited->ready.load() != 0);
}

bool is_outdated(const Executable& executable) {
  const AwaitedKernels* awaited = executable.awaited.get();
  return awaited != nullptr && awaited->left.load(std::memory_order_acquire) == 0 && awaited->ready.load() != 0;
}

Executable prepare(const Graph& graph, symbolic::Values* sizes, const PrepareOptions& options) {
  return prepare_outputs(graph, graph.outputs(), sizes, options);
}

Executable prepare_outputs(const Graph& graph, std::span<const ValueId> outputs, symbolic::Values* sizes,
                           const PrepareOptions& options) {
  const InterpreterScope eager(eager_interpreter());
  throw_if_error(sizes->check());
  if (options.like != nullptr && !awaits(*options.like)) {
    if (std::optional<Executable> made = resize(graph, sizes, *options.like, options.packed)) return *std::move(made);
  }
  PrepareOptions given = options;
  const bool counts = given.awaited == nullptr && compiling(given.compile) == Compiling::beside;
  if (counts) given.awaited = std::make_shared<AwaitedKernels>();
  Executable made = Preparation(graph, sizes, given).run(outputs);
  if (counts && given.awaited->asked.load() != 0) made.awaited = given.awaited;
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
