// The node of a function of the user.
#include <algorithm>

#include "core/autograd/anomaly.h"
#include "core/autograd/autograd.h"
#include "core/autograd/engine.h"
#include "core/autograd/history.h"
#include "core/autograd/interpreter.h"
#include "core/autograd/saved.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

using autograd::Edge;

template <class... Parts>
[[noreturn]] void refuse(std::string_view op, fmt::format_string<const Parts&...> text, const Parts&... parts) {
  throw Error(Subject{op}, Code::invalid_argument, fmt::format(text, parts...));
}

}  // namespace

// The tensors that a function has saved, each with the edge of its gradient.
struct Function::State {
  struct Kept {
    autograd::SavedTensor tensor;
    const TensorImpl* given = nullptr;  // the handle that was given to save(), for comparison only
    Edge edge;
    int64_t result = -1;  // the result of the function that the tensor is; -1: none
  };
  std::vector<Kept> kept;
  autograd::Node* node = nullptr;  // the node that owns the function; null before it is made
  uint64_t wanted = 0;             // in backward: wanted_bit of each wanted input
};

namespace {

class FunctionNode final : public autograd::Node {
 public:
  // Sets `wanted_of_function`, a field of the function, before it calls the function's backward.
  FunctionNode(std::shared_ptr<Function> function, uint64_t* wanted_of_function, std::vector<Edge> edges,
               const TensorList& results)
      : function_(std::move(function)),
        wanted_(wanted_of_function),
        name_(function_->name()),
        edges_(std::move(edges)) {
    for (const Tensor& result : results) results_.push_back({result.dtype(), result.dims(), {}});
    device_ = results[0].device();
    number_after_edges();
  }

  std::string_view name() const override { return name_; }
  size_t result_count() const override { return results_.size(); }
  std::span<const Edge> edges() const override { return edges_; }
  void drop_saved() override { function_.reset(); }

  void run(std::span<const Tensor> of_results, uint64_t wanted, std::span<Tensor> of_inputs) override {
    if (function_ == nullptr) {
      throw Error(Subject{"backward"}, Code::invalid_argument,
                  fmt::format("what {} saved was freed by an earlier backward.", name_),
                  "Call the first backward with retain_graph.");
    }
    TensorList given;
    for (size_t i = 0; i < results_.size(); ++i) {
      given.push_back(of_results[i].defined() ? of_results[i]
                                              : tenon::zeros(results_[i].dims, results_[i].dtype, device_));
    }
    *wanted_ = wanted;
    const TensorList gradients = function_->backward(given);
    if (gradients.size() != of_inputs.size()) {
      refuse(name_, "its backward gave {} gradients for {} inputs.", gradients.size(), of_inputs.size());
    }
    std::copy(gradients.begin(), gradients.end(), of_inputs.begin());
  }

 private:
  void destroy() override { delete this; }

  std::shared_ptr<Function> function_;
  uint64_t* wanted_;
  std::string name_;
  std::vector<Edge> edges_;
  std::vector<TensorMeta> results_;
  Device device_;
};

}  // namespace

Function::~Function() = default;

void Function::save(const Tensor& tensor) {
  if (state_ == nullptr) state_ = std::make_shared<State>();
  State::Kept& kept = state_->kept.emplace_back();
  kept.tensor.keep(autograd::without_history(tensor), name());
  kept.given = tensor.impl();
}

Tensor Function::saved(size_t i) const {
  if (state_ == nullptr || i >= state_->kept.size()) {
    refuse(name(), "there is no saved tensor {}; {} were saved.", i, state_ == nullptr ? 0 : state_->kept.size());
  }
  const State::Kept& kept = state_->kept[i];
  const Tensor tensor = kept.tensor.get(name(), "a tensor");
  if (!autograd::creates_graph()) return tensor;
  if (kept.result >= 0) {
    return autograd::with_edge(tensor, {autograd::NodeRef::share(state_->node), static_cast<uint32_t>(kept.result)});
  }
  return autograd::with_edge(tensor, kept.edge);
}

bool Function::wants(size_t i) const { return state_ != nullptr && (state_->wanted & autograd::wanted_bit(i)) != 0; }

TensorList call_function(std::shared_ptr<Function> function, const TensorList& inputs) {
  const std::string name = function->name();
  if (inputs.size() > autograd::kMostInputs) {
    refuse(name, "{} inputs are more than {}.", inputs.size(), autograd::kMostInputs);
  }
  std::vector<Edge> edges;
  for (const Tensor& input : inputs) {
    if (!input.defined()) refuse(name, "input {} is an undefined tensor.", edges.size());
    edges.push_back(autograd::remembers() ? autograd::edge_of(input) : Edge());
  }
  TensorList results;
  {
    const NoGrad scope;
    results = function->forward(inputs);
  }
  for (const Tensor& result : results) {
    if (!result.defined()) refuse(name, "its forward gave an undefined tensor.");
  }
  const bool flows = std::any_of(edges.begin(), edges.end(), [](const Edge& edge) { return bool(edge.node); });
  if (!flows || results.empty()) return results;
  if (function->state_ == nullptr) function->state_ = std::make_shared<Function::State>();
  Function::State& state = *function->state_;
  auto* node = new FunctionNode(function, &state.wanted, edges, results);
  const autograd::NodeRef owner(node);
  if (call_context.anomaly_notes != nullptr) autograd::note_call(*node);
  state.node = node;
  for (Function::State::Kept& kept : state.kept) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].impl() == kept.given) kept.edge = edges[i];
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].impl() == kept.given) kept.result = static_cast<int64_t>(i);
    }
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (is_floating(results[i].dtype()))
      results[i] = autograd::with_edge(results[i], {owner, static_cast<uint32_t>(i)});
  }
  return results;
}

}  // namespace tenon
