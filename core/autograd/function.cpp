// A user's own function as a node.
#include <algorithm>

#include "core/autograd/autograd.h"
#include "core/autograd/engine.h"
#include "core/autograd/history.h"
#include "core/autograd/interpreter.h"
#include "core/ops/ops.h"
#include "core/tensor/recording.h"
#include "core/vm/storage.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

using autograd::Edge;

template <class... Parts>
[[noreturn]] void refuse(fmt::format_string<const Parts&...> text, const Parts&... parts) {
  throw Error(Code::invalid_argument, fmt::format(text, parts...));
}

}  // namespace

// What a function has saved. An edge says where the gradient of a saved tensor goes.
struct Function::State {
  struct Kept {
    Tensor tensor;
    uint64_t version = 0;
    const TensorImpl* given = nullptr;  // the handle that was given to save(), for comparison only
    Edge edge;
    int64_t result = -1;  // of which the tensor is the elements; -1: of none
  };
  std::vector<Kept> kept;
  autograd::Node* node = nullptr;  // that owns the function; null before it is made
};

namespace {

class FunctionNode final : public autograd::Node {
 public:
  FunctionNode(std::shared_ptr<Function> function, std::vector<Edge> edges, const TensorList& results)
      : function_(std::move(function)), name_(function_->name()), edges_(std::move(edges)) {
    for (const Tensor& result : results) results_.push_back({result.dtype(), result.dims(), {}});
    device_ = results[0].device();
    number_after_edges();
  }

  std::string_view name() const override { return name_; }
  size_t result_count() const override { return results_.size(); }
  std::span<const Edge> edges() const override { return edges_; }
  void drop_saved() override { function_.reset(); }

  void run(std::span<const Tensor> of_results, uint64_t, std::span<Tensor> of_inputs) override {
    if (function_ == nullptr) {
      throw Error(Code::invalid_argument,
                  fmt::format("backward: what {} saved is gone, since a backward has run through it.", name_),
                  "Call the first backward with retain_graph.");
    }
    TensorList given;
    for (size_t i = 0; i < results_.size(); ++i) {
      given.push_back(of_results[i].defined() ? of_results[i]
                                              : tenon::zeros(results_[i].dims, results_[i].dtype, device_));
    }
    const TensorList gradients = function_->backward(given);
    if (gradients.size() != of_inputs.size()) {
      refuse("{}: its backward gave {} gradients for {} inputs.", name_, gradients.size(), of_inputs.size());
    }
    std::copy(gradients.begin(), gradients.end(), of_inputs.begin());
  }

 private:
  void destroy() override { delete this; }

  std::shared_ptr<Function> function_;
  std::string name_;
  std::vector<Edge> edges_;
  std::vector<TensorMeta> results_;
  Device device_;
};

}  // namespace

Function::~Function() = default;

void Function::save(const Tensor& tensor) {
  if (state_ == nullptr) state_ = std::make_shared<State>();
  state_->kept.push_back({autograd::without_history(tensor), write_count(tensor), tensor.impl(), Edge(), -1});
}

Tensor Function::saved(size_t i) const {
  if (state_ == nullptr || i >= state_->kept.size()) {
    refuse("{}: tensor {} was not saved; {} were.", name(), i, state_ == nullptr ? 0 : state_->kept.size());
  }
  const State::Kept& kept = state_->kept[i];
  if (write_count(kept.tensor) != kept.version) {
    refuse("backward: {} saved a tensor of shape {}, and {} has written into that tensor since.", name(),
           kept.tensor.dims(), last_writer(kept.tensor));
  }
  if (!autograd::creates_graph()) return kept.tensor;
  if (kept.result >= 0) {
    return autograd::with_edge(kept.tensor,
                               {autograd::NodeRef::share(state_->node), static_cast<uint32_t>(kept.result)});
  }
  return autograd::with_edge(kept.tensor, kept.edge);
}

TensorList call_function(std::shared_ptr<Function> function, const TensorList& inputs) {
  const std::string name = function->name();
  if (inputs.size() > autograd::kMostInputs) {
    refuse("{}: {} inputs are more than {}.", name, inputs.size(), autograd::kMostInputs);
  }
  std::vector<Edge> edges;
  for (const Tensor& input : inputs) {
    if (!input.defined()) refuse("{}: input {} is an undefined tensor.", name, edges.size());
    edges.push_back(autograd::remembers() ? autograd::edge_of(input) : Edge());
  }
  TensorList results;
  {
    const NoGrad scope;
    results = function->forward(inputs);
  }
  for (const Tensor& result : results) {
    if (!result.defined()) refuse("{}: its forward gave an undefined tensor.", name);
  }
  const bool flows = std::any_of(edges.begin(), edges.end(), [](const Edge& edge) { return bool(edge.node); });
  if (!flows || results.empty()) return results;
  auto* node = new FunctionNode(function, edges, results);
  const autograd::NodeRef owner(node);
  if (function->state_ != nullptr) {
    function->state_->node = node;
    for (Function::State::Kept& kept : function->state_->kept) {
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].impl() == kept.given) kept.edge = edges[i];
      }
      for (size_t i = 0; i < results.size(); ++i) {
        if (results[i].impl() == kept.given) kept.result = static_cast<int64_t>(i);
      }
    }
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (is_floating(results[i].dtype()))
      results[i] = autograd::with_edge(results[i], {owner, static_cast<uint32_t>(i)});
  }
  return results;
}

}  // namespace tenon
