// One run of a recording; and the node that its results carry, which runs the second half.
#include <algorithm>

#include "core/autograd/engine.h"
#include "core/autograd/history.h"
#include "core/lazy/callable.h"
#include "core/lazy/slots.h"
#include "core/ops/ops.h"
#include "core/tensor/recording.h"
#include "core/vm/storage.h"
#include "primitives/text/format.h"

namespace tenon::lazy {
namespace {

using autograd::Edge;

class CompiledNode final : public autograd::Node {
 public:
  struct Saved {
    Tensor tensor;
    uint64_t version = 0;
  };

  CompiledNode(std::shared_ptr<Entry> entry, std::shared_ptr<Programs> programs, CallShape shape, std::string name,
               std::vector<Saved> saved, const TensorList& inputs)
      : entry_(std::move(entry)),
        programs_(std::move(programs)),
        shape_(std::move(shape)),
        name_(std::move(name)),
        saved_(std::move(saved)) {
    for (const BackwardPart::Target& target : part().targets) {
      edges_.push_back(autograd::edge_of(target.leaf.defined() ? target.leaf : inputs[target.input]));
    }
    number_after_edges();
  }

  std::string_view name() const override { return name_; }
  size_t result_count() const override { return part().results.size(); }
  std::span<const Edge> edges() const override { return edges_; }
  void drop_saved() override {
    saved_.clear();
    dropped_ = true;
  }

  void run(std::span<const Tensor> of_results, uint64_t, std::span<Tensor> of_inputs) override {
    std::vector<bool> comes;
    for (size_t i = 0; i < of_results.size(); ++i) {
      comes.push_back(of_results[i].defined());
      if (comes[i]) throw_if_error(part().results[i].refused);
    }
    check();
    TensorList arguments;
    for (const Saved& saved : saved_) arguments.push_back(saved.tensor);
    for (const Tensor& gradient : of_results) {
      if (gradient.defined()) arguments.push_back(gradient);
    }
    const BackwardProgram& backward = entry_->backward(programs_.get(), shape_, comes);
    const TensorList gradients = graph::run(backward.program, arguments);
    for (size_t i = 0; i < of_inputs.size(); ++i) {
      const auto output = part().targets[i].output;
      if (output && backward.outputs[*output]) of_inputs[i] = gradients[*backward.outputs[*output]];
    }
  }

 private:
  void destroy() override { delete this; }
  const BackwardPart& part() const { return *entry_->recording().backward; }

  void check() const {
    if (autograd::creates_graph()) {
      throw Error(Code::unsupported,
                  fmt::format("backward: the gradient of {}, which is compiled, has no gradient of its own.", name_),
                  "Call the function without compile where create_graph is wanted.");
    }
    if (dropped_) {
      throw Error(
          Code::invalid_argument,
          fmt::format("backward: what {} saved for its gradient is gone, since a backward has run through it.", name_),
          "Call the first backward with retain_graph.");
    }
    for (const Saved& saved : saved_) {
      if (write_count(saved.tensor) == saved.version) continue;
      throw Error(Code::invalid_argument,
                  fmt::format("backward: {} saved a tensor of shape {} for its gradient, and {} has written into that "
                              "tensor since.",
                              name_, saved.tensor.dims(), last_writer(saved.tensor)),
                  "Write into a clone() of the tensor, or write after backward.");
    }
  }

  std::shared_ptr<Entry> entry_;
  std::shared_ptr<Programs> programs_;
  CallShape shape_;
  std::string name_;
  std::vector<Saved> saved_;
  std::vector<Edge> edges_;
  bool dropped_ = false;
};

class Run {
 public:
  Run(const std::shared_ptr<Entry>& entry, const CompileOptions& options, const CallShape& shape,
      const TensorList& inputs)
      : entry_(entry), recording_(entry->recording()), options_(options), shape_(shape), inputs_(inputs) {}

  TensorList run() {
    programs_ = entry_->programs(shape_);
    const RandomRange begin = recording_.drawn == 0 ? RandomRange() : default_generator().reserve(recording_.drawn);
    for (const Argument& argument : recording_.arguments) arguments_.push_back(argument.of_call(inputs_, begin));
    std::vector<Tensor> bound(recording_.writes.empty() ? 0 : programs_->forward.outputs.size());
    for (const Write& write : recording_.writes) bound[write.output] = arguments_[write.argument];
    {
      const InterpreterScope scope(eager_interpreter());
      outputs_ = graph::run(programs_->forward, arguments_, bound);
    }
    for (const SlotUpdate& update : recording_.slots) apply(update);
    TensorList results;
    for (const ResultSource& source : recording_.results) results.push_back(result_of(source));
    if (recording_.backward) add_gradient(&results);
    return results;
  }

 private:
  void apply(const SlotUpdate& update) {
    if (update.kind == SlotUpdate::keep) return;
    const auto slot = update.slot.of(inputs_);
    if (slot == nullptr) return;
    set_gradient(*slot, update.kind == SlotUpdate::output ? outputs_[update.index] : update.tensor);
  }

  Tensor result_of(const ResultSource& source) const {
    switch (source.kind) {
      case ResultSource::argument: return inputs_[source.index];
      case ResultSource::outside: return source.tensor;
      case ResultSource::output: break;
    }
    return outputs_[source.index];
  }

  void add_gradient(TensorList* results) {
    const BackwardPart& part = *recording_.backward;
    std::vector<CompiledNode::Saved> saved;
    for (const BackwardPart::Saved& from : part.saved) {
      const Tensor& tensor = from.argument ? arguments_[from.index] : outputs_[from.index];
      saved.push_back({autograd::without_history(tensor), write_count(tensor)});
    }
    const autograd::NodeRef node(new CompiledNode(entry_, programs_, shape_, options_.name, std::move(saved), inputs_));
    for (size_t i = 0; i < part.results.size(); ++i) {
      Tensor& result = (*results)[part.results[i].number];
      result = autograd::with_edge(result, {node, static_cast<uint32_t>(i)});
    }
  }

  const std::shared_ptr<Entry>& entry_;
  const Recording& recording_;
  const CompileOptions& options_;
  const CallShape& shape_;
  const TensorList& inputs_;
  std::shared_ptr<Programs> programs_;
  TensorList arguments_, outputs_;
};

}  // namespace

Tensor Argument::of_call(const TensorList& inputs, RandomRange begin) const {
  if (of == RootOf::random) return draw.numbers(begin);
  if (of == RootOf::input) return whole ? whole_storage(inputs[input]) : inputs[input];
  if (!slot) return tensor;
  const Tensor gradient = gradient_in(*slot->of(inputs));
  return whole_gradient ? whole_storage(gradient) : gradient;
}

TensorList run(const std::shared_ptr<Entry>& entry, const CompileOptions& options, const CallShape& shape,
               const TensorList& inputs) {
  return Run(entry, options, shape, inputs).run();
}

}  // namespace tenon::lazy
