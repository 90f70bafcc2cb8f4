// Runs a recording; defines the autograd node of its results, which runs backward.
#include <algorithm>

#include "core/autograd/engine.h"
#include "core/autograd/history.h"
#include "core/compile/callable.h"
#include "core/compile/slots.h"
#include "core/global/global.h"
#include "core/ops/ops.h"
#include "core/tensor/factory.h"
#include "core/tensor/recording.h"
#include "core/vm/storage.h"
#include "primitives/text/format.h"

namespace tenon::compilation {
namespace {

using autograd::Edge;

class CompiledNode final : public autograd::Node {
 public:
  struct Saved {
    Tensor tensor;
    uint64_t version = 0;
  };
  // The call that made the node, and the tensors that it kept.
  struct Call {
    std::shared_ptr<Backward> backward;
    std::weak_ptr<Entry> entry;  // weak: it holds state, which refers to this node after it is written
    std::shared_ptr<Programs> programs;
    std::weak_ptr<Callable> function;
    CallShape shape;
    TensorList results;  // if all_come is true: the results that want gradients, without data
    std::vector<Saved> saved;
    TensorList inputs;  // the inputs of the function
    Replay replay;
  };

  CompiledNode(Call call, const TensorList& captures, std::string name)
      : call_(std::move(call)), name_(std::move(name)) {
    for (const BackwardPart::Target& target : part().targets) {
      edges_.push_back(autograd::edge_of(target.of(call_.inputs, captures)));
    }
    for (Tensor& input : call_.inputs) {
      const Edge edge = autograd::edge_of(input);
      const autograd::History* history = autograd::history_of(input);
      // without its history: the tensor may refer to this node after it is written
      input = autograd::with_edge(input, edge);
      if (edge.node) autograd::need_history(input).slot = history->slot;
    }
    number_after_edges();
  }

  std::string_view name() const override { return name_; }
  size_t result_count() const override { return part().results.size(); }
  std::span<const Edge> edges() const override { return edges_; }
  void drop_saved() override {
    call_.saved.clear();
    call_.inputs.clear();
    call_.replay.before.clear();
    dropped_ = true;
  }

  void run(std::span<const Tensor> of_results, uint64_t wanted, std::span<Tensor> of_inputs) override {
    std::vector<bool> comes;
    TensorList gradients;
    for (size_t i = 0; i < of_results.size(); ++i) {
      const BackwardPart::OfResult& result = part().results[i];
      for (size_t target = 0; of_results[i].defined() && target < result.reaches.size(); ++target) {
        if (result.reaches[target] && (wanted & autograd::wanted_bit(target)) != 0) throw_if_error(result.refused);
      }
      Tensor gradient = of_results[i];
      if (!gradient.defined() && part().all_come) gradient = none_of(i);
      comes.push_back(gradient.defined() && result.refused.ok());
      if (comes[i]) gradients.push_back(gradient);
    }
    check();
    if (autograd::creates_graph()) {
      const std::shared_ptr<Callable> function = locked(call_.function, name_);
      const TensorList found =
          function->gradients(locked(call_.entry, name_), comes, call_.inputs, gradients, call_.replay);
      std::copy(found.begin(), found.end(), of_inputs.begin());
    } else {
      run_backward(comes, gradients, of_inputs);
    }
    if (part().all_come) drop_unreached(of_results, of_inputs);
  }

 private:
  void destroy() override { delete this; }
  const BackwardPart& part() const { return call_.backward->part(); }

  void run_backward(const std::vector<bool>& comes, const TensorList& gradients, std::span<Tensor> of_inputs) {
    TensorList arguments;
    for (const Saved& saved : call_.saved) arguments.push_back(saved.tensor);
    for (size_t i = 0, next = 0; i < comes.size(); ++i) {
      if (comes[i]) arguments.push_back(part_of_gradient(gradients[next++], part().results[i].global));
    }
    const auto backward = call_.backward->program(call_.programs.get(), call_.shape, comes);
    const TensorList found = graph::run(backward->program, arguments);
    for (size_t i = 0; i < of_inputs.size(); ++i) {
      const BackwardPart::Target& target = part().targets[i];
      if (!target.output) continue;
      const bool here = *target.output != kNoPart;
      if (here && !backward->outputs[*target.output]) continue;
      const Tensor gradient = here ? found[*backward->outputs[*target.output]] : Tensor();
      of_inputs[i] = target.global ? global::make_global(*target.global, gradient) : gradient;
    }
  }

  // Removes gradients that are made only of zeros, because they depend only on results without incoming gradients.
  void drop_unreached(std::span<const Tensor> of_results, std::span<Tensor> of_inputs) const {
    for (size_t target = 0; target < of_inputs.size(); ++target) {
      bool reached = false;
      for (size_t i = 0; i < of_results.size(); ++i) {
        reached = reached || (of_results[i].defined() && part().results[i].reaches[target]);
      }
      if (!reached) of_inputs[target] = Tensor();
    }
  }

  Tensor none_of(size_t result) const {
    const std::optional<global::Facts>& facts = part().results[result].global;
    if (facts) return global::zeros(facts->dims, facts->layout.placement, facts->layout.sbp, facts->dtype);
    const Tensor& like = call_.results[result];
    return tenon::zeros(like.dims(), like.dtype(), like.device());
  }

  // The program's input for `gradient`, which may have any layout.
  static Tensor part_of_gradient(const Tensor& gradient, const std::optional<global::Facts>& facts) {
    if (!facts) return gradient;
    const global::Placement& placement = facts->layout.placement;
    const Tensor there = global::to_global(gradient.detach(), placement, facts->layout.sbp);
    const Tensor& part = global::held(there);
    return part.defined() ? part : Tensor::empty({0}, facts->dtype, placement.device());
  }

  void check() const {
    if (dropped_) {
      throw Error(Subject{"backward"}, Code::invalid_argument,
                  fmt::format("what {} saved for its gradient was freed by an earlier backward.", name_),
                  "Call the first backward with retain_graph.");
    }
    for (const Saved& saved : call_.saved) {
      if (write_count(saved.tensor) == saved.version) continue;
      throw Error(Subject{"backward"}, Code::invalid_argument,
                  fmt::format("{} saved a tensor of shape {} for its gradient, and {} has written into that "
                              "tensor since.",
                              name_, saved.tensor.dims(), last_writer(saved.tensor)),
                  "Write into a clone() of the tensor, or write after backward.");
    }
  }

  Call call_;
  std::string name_;
  std::vector<Edge> edges_;
  bool dropped_ = false;
};

class Run {
 public:
  Run(const std::shared_ptr<Entry>& entry, const std::shared_ptr<Callable>& owner, const CallShape& shape,
      const TensorList& inputs, const Replay* replay)
      : entry_(entry), recording_(entry->recording()), owner_(owner), shape_(shape), inputs_(inputs), replay_(replay) {}

  TensorList run() {
    programs_ = entry_->programs(shape_);
    const RandomRange begin = drawn();
    for (const Argument& argument : recording_.arguments) arguments_.push_back(argument.of_call(inputs_, begin));
    if (replay_ != nullptr) check_state();
    const Replay now = entry_->backward() ? replay_of(begin) : Replay();
    std::vector<Tensor> bound(recording_.writes.empty() ? 0 : programs_->forward.outputs.size());
    for (const Write& write : recording_.writes) bound[write.output] = arguments_[write.argument];
    {
      const InterpreterScope scope(eager_interpreter());
      outputs_ = graph::run(programs_->forward, arguments_, bound);
    }
    for (const size_t input : recording_.written_globals) global::value_of(inputs_[input])->writes->note();
    for (const Tensor& tensor : recording_.captured_globals) global::value_of(tensor)->writes->note();
    for (const SlotUpdate& update : recording_.slots) apply(update);
    TensorList results;
    for (const ResultSource& source : recording_.results) results.push_back(result_of(source));
    if (entry_->backward()) add_gradient(now, &results);
    return results;
  }

 private:
  RandomRange drawn() const {
    if (recording_.drawn == 0) return {};
    return replay_ != nullptr ? replay_->drawn : default_generator().reserve(recording_.drawn);
  }

  Replay replay_of(RandomRange begin) const {
    Replay replay{begin, {}};
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (recording_.arguments[i].of == RootOf::random) continue;
      replay.before.emplace_back(autograd::without_history(arguments_[i]), write_count(arguments_[i]));
    }
    return replay;
  }

  // Errors: invalid_argument if the program reads a tensor that was written since the replayed call began.
  void check_state() const {
    for (size_t i = 0; i < arguments_.size(); ++i) {
      const graph::Value& value = recording_.forward[recording_.forward.inputs()[i]];
      if (value.uses.empty() && !recording_.forward.is_output(recording_.forward.inputs()[i])) continue;
      for (const auto& [tensor, version] : replay_->before) {
        if (!(tensor.impl()->storage == arguments_[i].impl()->storage) || write_count(tensor) == version) continue;
        throw Error(Subject{"backward"}, Code::invalid_argument,
                    fmt::format("{} needs a tensor of shape {} as it was before the call, and {} has written "
                                "into that tensor since.",
                                owner_->name(), arguments_[i].dims(), last_writer(tensor)),
                    "Write into a clone() of the tensor, or call the function without compile.");
      }
    }
  }

  void apply(const SlotUpdate& update) {
    if (update.kind == SlotUpdate::keep) return;
    const auto slot = update.slot.of(inputs_);
    if (slot == nullptr) return;
    set_gradient(*slot, update.kind == SlotUpdate::output ? output(update.index, update.global) : update.tensor);
  }

  Tensor result_of(const ResultSource& source) const {
    switch (source.kind) {
      case ResultSource::argument: return inputs_[source.index];
      case ResultSource::outside: return source.tensor;
      case ResultSource::output: break;
    }
    return output(source.index, source.global);
  }

  Tensor output(size_t index, const std::optional<global::Facts>& facts) const {
    const Tensor here = index == kNoPart ? Tensor() : outputs_[index];
    return facts ? global::make_global(*facts, here) : here;
  }

  void add_gradient(const Replay& replay, TensorList* results) {
    const BackwardPart& part = entry_->backward()->part();
    std::vector<CompiledNode::Saved> saved;
    for (const BackwardPart::Saved& from : part.saved) {
      const Tensor& tensor = from.argument ? arguments_[from.index] : outputs_[from.index];
      saved.push_back({autograd::without_history(tensor), write_count(tensor)});
    }
    TensorList like;
    for (size_t i = 0; part.all_come && i < part.results.size(); ++i) {
      const TensorImpl& result = *(*results)[part.results[i].number].impl();
      like.push_back(make_meta(result.device, {result.dtype, result.dims, contiguous_strides(result.dims)}));
    }
    const autograd::NodeRef node(new CompiledNode(
        {entry_->backward(), entry_, programs_, owner_, shape_, like, std::move(saved), inputs_, replay},
        recording_.wanting, owner_->name()));
    for (size_t i = 0; i < part.results.size(); ++i) {
      Tensor& result = (*results)[part.results[i].number];
      result = autograd::with_edge(result, {node, static_cast<uint32_t>(i)});
    }
  }

  const std::shared_ptr<Entry>& entry_;
  const RecordedFunction& recording_;
  const std::shared_ptr<Callable>& owner_;
  const CallShape& shape_;
  const TensorList& inputs_;
  const Replay* replay_;
  std::shared_ptr<Programs> programs_;
  TensorList arguments_, outputs_;
};

}  // namespace

Tensor Argument::of_call(const TensorList& inputs, RandomRange begin) const {
  if (of == RootOf::random) return draw.numbers(begin);
  if (of == RootOf::input) {
    const Tensor& here = global::held(inputs[input]);
    return whole ? whole_storage(here) : here;
  }
  if (!slot) return tensor;
  const Tensor gradient = global::held(gradient_in(*slot->of(inputs)));
  return whole_gradient ? whole_storage(gradient) : gradient;
}

TensorList run(const std::shared_ptr<Entry>& entry, const std::shared_ptr<Callable>& owner, const CallShape& shape,
               const TensorList& inputs, const Replay* replay) {
  return Run(entry, owner, shape, inputs, replay).run();
}

}  // namespace tenon::compilation
