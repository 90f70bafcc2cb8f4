// Records one call of a function: its inputs, ops, writes and results.
#include <algorithm>
#include <optional>

#include "core/autograd/engine.h"
#include "core/autograd/history.h"
#include "core/autograd/interpreter.h"
#include "core/compile/callable.h"
#include "core/compile/early.h"
#include "core/compile/recorded_function.h"
#include "core/compile/slots.h"
#include "core/compile/tracer.h"
#include "core/global/exchange.h"
#include "core/graph/backward_program.h"
#include "core/graph/passes/passes.h"
#include "core/graph/passes/recompute.h"
#include "core/tensor/recording.h"
#include "core/vm/storage.h"
#include "primitives/text/format.h"

namespace tenon::compilation {
namespace {

using autograd::Edge;
using autograd::edge_of;
using autograd::history_of;

// The point where the gradient of an argument that an op outside computed leaves the recording.
class BoundaryNode final : public autograd::Node {
 public:
  explicit BoundaryNode(size_t argument) : argument_(argument) { number_after_edges(); }
  std::string_view name() const override { return "an op outside of the function"; }
  size_t result_count() const override { return 1; }
  std::span<const Edge> edges() const override { return {}; }
  bool accumulates() const override { return true; }
  void run(std::span<const Tensor>, uint64_t, std::span<Tensor>) override {
    throw Error(Subject{"backward"}, Code::invalid_argument,
                fmt::format("it reaches argument {}, which was computed outside of the function that is "
                            "recorded.",
                            argument_),
                "Call backward outside of the function, or give it detach() of the argument.");
  }

 private:
  void destroy() override { delete this; }

  size_t argument_;
};

// The point where the gradient of a result of a function in parts would leave the recording.
class LostNode final : public autograd::Node {
 public:
  explicit LostNode(std::string function) : function_(std::move(function)) { number_after_edges(); }
  std::string_view name() const override { return function_; }
  size_t result_count() const override { return 1; }
  std::span<const Edge> edges() const override { return {}; }
  bool accumulates() const override { return true; }
  void run(std::span<const Tensor>, uint64_t, std::span<Tensor>) override {
    throw Error(Subject{"backward"}, Code::unsupported,
                fmt::format("{} was run in parts, so its results have no gradient.", function_),
                "Call backward inside the function, or call the function without compile.");
  }

 private:
  void destroy() override { delete this; }

  std::string function_;
};

class Take {
 public:
  Take(const Function& function, const CompileOptions& options, const TensorList& inputs, Parts* parts, Writes writes,
       const std::function<bool(const OpInfo&)>& lacks)
      : function_(function),
        options_(options),
        inputs_(inputs),
        writes_(writes),
        tracer_(Device::current(), options, gradients_on(), parts, lacks),
        over_(tracer_),
        interpreter_(gradients_on() ? static_cast<Interpreter&>(over_) : tracer_) {
    tracer_.recorder().label(options.name);
  }

  Taken run() {
    note_frozen();
    for (const Tensor& input : inputs_) {
      made_.argument_ranks.push_back(global::value_of(input) != nullptr ? 0 : static_cast<size_t>(input.rank()));
    }
    call();
    if (tracer_.ended()) return {std::nullopt, real_results()};
    tracer_.check_histories({});
    sort_results();
    sort_slots();
    sort_writes();
    sort_global_writes();
    add_guards();
    add_token();
    made_.global = is_global();
    forward_outputs_ = outputs_.size();
    const graph::NodeId begin = tracer_.recorder().next_node();
    add_backward();
    finish(begin);
    return {std::move(made_), {}};
  }

 private:
  void note_frozen() {
    for (const Tensor& tensor : options_.frozen) {
      if (tensor.requires_grad()) {
        throw Error(
            Subject{options_.name}, Code::invalid_argument,
            fmt::format("a frozen tensor of shape {} requires a gradient, but a constant has none.", tensor.dims()),
            "Remove the tensor from the option frozen, or call requires_grad_(false).");
      }
      made_.frozen.emplace_back(tensor, write_count(tensor));
    }
  }

  void call() {
    const global::GlobalProgramScope global(&tracer_.parts_of_ranks());
    values_ = tracer_.captures().add_inputs(inputs_);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (const auto facts = global::facts_of(inputs_[i])) values_[i] = global::make_global(*facts, values_[i]);
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Edge& edge = edge_of(inputs_[i]);
      if (!edge.node || &interpreter_ != &over_) continue;
      const bool leaf = inputs_[i].is_leaf();
      values_[i] = autograd::with_edge(values_[i], leaf ? edge : Edge{autograd::NodeRef(new BoundaryNode(i)), 0});
      if (leaf) autograd::need_history(values_[i]).slot = history_of(inputs_[i])->slot;
    }
    Slots slots;
    const HostWatchScope watch(&tracer_);
    const autograd::BoundaryScope boundary(&tracer_.captures());
    const InterpreterScope scope(interpreter_);
    results_ = function_(values_);
    if (tracer_.ended()) {
      slots.settle([&](const Tensor& gradient) { return tracer_.real(gradient); });
    } else {
      slots_ = slots.finish();
    }
  }

  // The results of a function that continued eagerly. Tensors computed before the read have no history.
  TensorList real_results() {
    TensorList results;
    for (const Tensor& result : results_) {
      const auto same = [&](const Tensor& value) { return value.impl() == result.impl(); };
      const auto argument = std::find_if(values_.begin(), values_.end(), same);
      if (argument != values_.end()) {
        results.push_back(inputs_[static_cast<size_t>(argument - values_.begin())]);
        continue;
      }
      Tensor real = result.defined() ? tracer_.real(result) : result;
      if (result.defined() && result.requires_grad()) real = autograd::with_edge(real, lost_gradient());
      results.push_back(std::move(real));
    }
    return results;
  }

  Edge lost_gradient() const { return {autograd::NodeRef(new LostNode(options_.name)), 0}; }

  // Adds an output; for a global tensor this rank's part.
  size_t add_output(const Tensor& tensor) {
    const Tensor& here = global::held(tensor);
    if (!here.defined()) return kNoPart;
    outputs_.push_back(tracer_.value_of(here));
    return outputs_.size() - 1;
  }

  // Adds the token of the last exchange after the one that gave `seen_`, so that it and the exchanges before it are
  // kept.
  void add_token() {
    const Tensor& token = tracer_.parts_of_ranks().token;
    if (!token.defined() || token.impl() == seen_.impl()) return;
    seen_ = token;
    outputs_.push_back(tracer_.value_of(token));
  }

  // True if the function uses global tensors.
  bool is_global() {
    const auto global = [](const Tensor& tensor) { return global::value_of(tensor) != nullptr; };
    return !tracer_.globals().empty() || tracer_.parts_of_ranks().token.defined() ||
           std::any_of(inputs_.begin(), inputs_.end(), global) || std::any_of(results_.begin(), results_.end(), global);
  }

  void sort_results() {
    for (size_t k = 0; k < results_.size(); ++k) {
      const Tensor& result = results_[k];
      if (!result.defined()) {
        throw Error(Subject{options_.name}, Code::invalid_argument,
                    fmt::format("result {} of the function is an undefined tensor.", k));
      }
      const auto same = [&](const Tensor& value) { return value.impl() == result.impl(); };
      const auto argument = std::find_if(values_.begin(), values_.end(), same);
      if (argument != values_.end()) {
        made_.results.push_back({ResultSource::argument, static_cast<size_t>(argument - values_.begin())});
      } else if (tracer_.is_from_outside(result)) {
        made_.results.push_back({ResultSource::outside, 0, result});
      } else {
        if (result.requires_grad()) wanting_.push_back(k);
        made_.results.push_back({ResultSource::output, add_output(result), {}, facts_of_result(result)});
      }
    }
  }

  // Results own their elements and are row-major.
  static std::optional<global::Facts> facts_of_result(const Tensor& tensor) {
    std::optional<global::Facts> facts = global::facts_of(tensor);
    if (facts) facts->strides = contiguous_strides(facts->dims);
    return facts;
  }

  SlotRef ref_of(const std::shared_ptr<autograd::GradientSlot>& slot) const {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const autograd::History* history = history_of(inputs_[i]);
      if (history != nullptr && history->slot == slot) return {nullptr, i};
    }
    return {slot, 0};
  }

  void sort_slots() {
    if (writes_ == Writes::dropped && !slots_.empty()) {
      throw Error(Subject{options_.name}, Code::unsupported,
                  "the function leaves gradients on leaves, so its gradient cannot be differentiated again.",
                  "Use grad() inside the function in place of backward().");
    }
    for (const SlotState& state : slots_) {
      SlotUpdate update{ref_of(state.slot)};
      if (!state.after.defined()) {
        update.kind = SlotUpdate::forget;
      } else if (state.before.defined() && state.after.impl() == state.before.impl()) {
        update.kind = SlotUpdate::keep;
      } else if (tracer_.is_from_outside(state.after)) {
        update.kind = SlotUpdate::outside;
        update.tensor = state.after;
      } else {
        update.kind = SlotUpdate::output;
        update.index = add_output(state.after);
        update.global = facts_of_result(state.after);
      }
      made_.slots.push_back(update);
      if (!state.read) continue;
      Guard guard{GuardKind::gradient};
      guard.slot = update.slot;
      guard.whole = state.before;
      if (state.before.defined()) guard.tensor = global::held(state.before);
      if (guard.tensor.defined()) guard.geometry = geometry_of(guard.tensor);
      made_.guards.push_back(std::move(guard));
    }
  }

  // Notes the gradient slot whose storage the argument has.
  void take_from_slot(Argument* argument) const {
    for (const SlotState& state : slots_) {
      if (!state.read || !state.before.defined()) continue;
      const Tensor& gradient = global::held(state.before);
      if (!gradient.defined()) continue;
      if (!(gradient.impl()->storage == argument->tensor.impl()->storage)) continue;
      argument->slot = ref_of(state.slot);
      argument->whole_gradient = geometry_of(gradient) != geometry_of(argument->tensor);
    }
  }

  void sort_writes() {
    tracer_.captures().check_overlaps();
    made_.drawn = tracer_.drawn();
    for (const Root& root : tracer_.captures().roots()) {
      if (root.of == RootOf::made) continue;
      Argument argument{root.of, root.input, root.whole, root.part, root.tensor};
      argument.draw = root.draw;
      if (root.of == RootOf::capture) take_from_slot(&argument);
      const bool written = root.written() && writes_ == Writes::kept;
      if (written && root.outlives()) made_.writes.push_back({made_.arguments.size(), add_output(root.recorded)});
      written_.push_back(written);
      made_.arguments.push_back(std::move(argument));
    }
  }

  // Lists the global tensors that the function writes. Views whose elements had to move compare write counts, which
  // must be equal on every rank.
  void sort_global_writes() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const global::GlobalValue* value = global::value_of(values_[i]);
      if (value == nullptr || value->writes->count == 0) continue;
      if (global::value_of(inputs_[i])->copied != nullptr) {
        throw Error(Subject{options_.name}, Code::unsupported,
                    fmt::format("it writes its argument {}, a view whose elements had to move, and a recording does "
                                "not see the base of the view.",
                                i),
                    "Pass the base to the function, and make the view inside.");
      }
      made_.written_globals.push_back(i);
    }
    for (const Tracer::Global& global : tracer_.globals()) {
      if (global::value_of(global.tensor)->writes->count != global.writes)
        made_.captured_globals.push_back(global.tensor);
    }
  }

  void add_guards() {
    const Captures& captures = tracer_.captures();
    std::vector<bool> input_written(inputs_.size(), false);
    for (const Root& root : captures.roots()) {
      if (root.of == RootOf::input && root.written()) input_written[root.input] = true;
    }
    for (const Root& root : captures.roots()) {
      if (root.of != RootOf::capture) continue;
      for (size_t i = 0; i < inputs_.size(); ++i) {
        const Tensor& input = global::held(inputs_[i]);
        if ((!root.written() && !input_written[i]) || !input.defined()) continue;
        const bool shares = input.impl()->storage == root.tensor.impl()->storage;
        add_sharing(shares ? GuardKind::together : GuardKind::apart, i, root.tensor);
      }
    }
    for (const auto& [input, tensor] : captures.views_of_inputs()) add_sharing(GuardKind::together, input, tensor);
    if (&interpreter_ != &over_) return;
    for (const Tensor& tensor : captures.handles()) {
      Guard guard{GuardKind::wants_gradient};
      guard.tensor = tensor;
      guard.wanted = tensor.requires_grad();
      guard.hooked = has_hooks(tensor);
      made_.guards.push_back(std::move(guard));
    }
  }

  void add_sharing(GuardKind kind, size_t input, const Tensor& tensor) {
    made_.guards.push_back({kind, input, tensor, {}, geometry_of(global::held(inputs_[input]))});
  }

  // The points where gradients leave the recording: arguments and captures, each once.
  std::vector<autograd::Capture> leaving(std::vector<BackwardPart::Target>* targets) {
    std::vector<autograd::Capture> edges;
    const auto add = [&](const Edge& edge, BackwardPart::Target target) {
      const auto same = [&](const autograd::Capture& other) {
        return other.edge.node.get() == edge.node.get() && other.edge.index == edge.index;
      };
      if (!edge.node || std::any_of(edges.begin(), edges.end(), same)) return;
      edges.push_back({edge, Tensor()});
      targets->push_back(std::move(target));
    };
    for (size_t i = 0; i < values_.size(); ++i) add(edge_of(values_[i]), {false, i});
    for (const WantingCapture& capture : tracer_.captures().wanting()) {
      add(capture.edge, {true, made_.wanting.size()});
      made_.wanting.push_back(capture.tensor);
    }
    return edges;
  }

  // Records backward from `roots` to `leaves`. Returns the error if this is impossible.
  Status record_backward(const std::vector<autograd::Root>& roots, std::vector<autograd::Capture>* leaves) {
    try {
      const global::GlobalProgramScope global(&tracer_.parts_of_ranks());
      const InterpreterScope scope(over_);
      const HostWatchScope watch(&tracer_);
      const autograd::BoundaryScope boundary(&tracer_.captures());
      autograd::run_backward(roots, *leaves, {true, false, true, true});
    } catch (const Error& error) {
      return error.status();
    }
    return {};
  }

  // The incoming gradient of `result`, as an input of the program. `global` gets the facts of a global result; the
  // input is then this rank's part, or an empty tensor if the rank has none.
  Tensor gradient_of(const Tensor& result, std::optional<global::Facts>* global) {
    *global = facts_of_result(result);
    if (!*global) return tracer_.recorder().input_like(result);
    (*global)->layout = global::without_partial((*global)->layout);
    const global::Placement& placement = (*global)->layout.placement;
    const global::GlobalProgramScope scope(&tracer_.parts_of_ranks());
    const Dims dims = placement.here() ? global::local_dims((*global)->dims, (*global)->layout) : Dims{0};
    const Tensor part = tracer_.recorder().input(result.dtype(), dims, placement.device());
    return global::make_global(**global, placement.here() ? part : Tensor());
  }

  void note_reaches(const std::vector<autograd::Root>& roots, const std::vector<autograd::Capture>& leaves,
                    BackwardPart* part) const {
    part->all_come = made_.global;
    for (size_t i = 0; i < roots.size(); ++i) {
      BackwardPart::OfResult& result = part->results[i];
      if (part->all_come || !result.refused.ok()) result.reaches = autograd::reached(roots[i].edge, leaves);
    }
  }

  // Records backward from all results that want a gradient. Results for which this is impossible are left out; a later
  // backward from them fails with the error.
  void add_backward() {
    if (wanting_.empty()) return;
    std::vector<BackwardPart::Target> targets;
    const std::vector<autograd::Capture> leaving_here = leaving(&targets);
    std::vector<autograd::Capture> leaves = leaving_here;
    BackwardPart part{graph::Graph(options_.name), {}, {}, {}};
    std::vector<autograd::Root> roots;
    for (size_t k : wanting_) {
      part.results.push_back({k});
      roots.push_back({edge_of(results_[k]), gradient_of(results_[k], &part.results.back().global)});
    }
    bool refused = !record_backward(roots, &leaves).ok();
    if (refused) {
      std::vector<autograd::Root> right;
      for (size_t i = 0; i < roots.size(); ++i) {
        leaves = leaving_here;
        part.results[i].refused = record_backward({roots[i]}, &leaves);
        if (part.results[i].refused.ok()) right.push_back(roots[i]);
      }
      leaves = leaving_here;
      throw_if_error(record_backward(right, &leaves));
    }
    note_reaches(roots, leaving_here, &part);
    std::vector<bool> kept(leaves.size(), true);
    for (size_t i = 0; i < leaves.size(); ++i) {
      kept[i] = refused || leaves[i].gradient.defined();
      if (!kept[i]) continue;
      if (leaves[i].gradient.defined()) {
        const size_t output = add_output(leaves[i].gradient);
        targets[i].output = output == kNoPart ? kNoPart : output - forward_outputs_;
        targets[i].global = facts_of_result(leaves[i].gradient);
      }
      part.targets.push_back(targets[i]);
    }
    add_token();
    for (BackwardPart::OfResult& result : part.results) {
      for (size_t i = kept.size(); i-- > 0;) {
        if (!kept[i] && !result.reaches.empty())
          result.reaches.erase(result.reaches.begin() + static_cast<ptrdiff_t>(i));
      }
    }
    made_.backward = std::make_shared<BackwardPart>(std::move(part));
  }

  // True if no later backward can follow, because none is recorded or all are refused.
  bool is_whole() const { return outputs_.size() == forward_outputs_; }

  // The options of recomputation for a program, which may contain forward and backward.
  graph::RecomputeOptions recomputing(const graph::Graph& program, graph::RecomputeReport* report) const {
    graph::RecomputeOptions options;
    options.limit = options_.memory_limit;
    options.freely = options_.recompute;
    options.report = report;
    for (size_t i = 0; i < program.inputs().size(); ++i) {
      const bool argument = i < made_.arguments.size();
      const bool kept = is_whole() || !argument || !written_[i];
      options.held.inputs.push_back(kept && !(argument && made_.arguments[i].of == RootOf::random));
    }
    options.held.over.resize(program.outputs().size(), graph::kNoState);
    for (const Write& write : made_.writes) options.held.over[write.output] = static_cast<uint32_t>(write.argument);
    return options;
  }

  void finish(graph::NodeId begin) {
    made_.recorded = tracer_.recorder().finish(outputs_);
    graph::Graph program = made_.recorded.copy();
    graph::PassOptions passes = Making(options_).passes;
    graph::RecomputeReport report;
    const graph::RecomputeOptions recompute = recomputing(program, &report);
    graph::RecomputeOptions of_forward = recompute;
    if (!is_whole()) {
      graph::RecomputeOptions of_halves = recompute;
      of_halves.begin = begin;
      of_halves.fused = graph::fuses(passes);
      graph::compute_again(&program, of_halves);
      of_forward = {.freely = false, .held = recompute.held};
    }
    passes.recompute = &of_forward;  // runs after the other passes
    std::vector<graph::ValueId> gradients(program.inputs().begin() + static_cast<ptrdiff_t>(made_.arguments.size()),
                                          program.inputs().end());
    graph::Halves halves = graph::split_program(program, forward_outputs_, begin, gradients, written_);
    made_.forward = std::move(halves.forward);
    begin_exchanges_early(&made_.forward);
    graph::optimise(&made_.forward, passes);
    made_.memory = {report.saved, report.saved_before, report.live, report.live_before, 0, std::move(report.ops)};
    if (made_.backward == nullptr) return;
    made_.backward->graph = std::move(halves.backward);
    begin_exchanges_early(&made_.backward->graph);
    size_t output = forward_outputs_;
    for (size_t i = 0; i < halves.read.size(); ++i) {
      const auto at = std::find(program.inputs().begin(), program.inputs().end(), halves.read[i]);
      const auto argument = static_cast<size_t>(at - program.inputs().begin());
      made_.backward->saved.push_back({halves.is_argument[i], halves.is_argument[i] ? argument : output++});
    }
  }

  const Function& function_;
  const CompileOptions& options_;
  const TensorList& inputs_;
  const Writes writes_;
  Tracer tracer_;
  autograd::GradientInterpreter over_;
  Interpreter& interpreter_;
  TensorList values_;            // the arguments as the function sees them
  TensorList results_;           // the results of the function
  std::vector<size_t> wanting_;  // indices of results that want a gradient
  std::vector<SlotState> slots_;
  TensorList outputs_;  // the outputs of the program, those of forward first
  Tensor seen_;         // token of the last exchange that is needed
  size_t forward_outputs_ = 0;
  std::vector<bool> written_;  // by argument of the program
  RecordedFunction made_;
};

}  // namespace

Taken record(const Function& function, const CompileOptions& options, const TensorList& inputs, const CallShape& shape,
             Parts* parts, Writes writes, const std::function<bool(const OpInfo&)>& lacks) {
  Taken taken = Take(function, options, inputs, parts, writes, lacks).run();
  if (taken.recording) taken.recording->shape = shape;
  return taken;
}

}  // namespace tenon::compilation
