// Checkpointed functions: their saved tensors are computed again in backward, with the hooks of saved tensors. pack()
// keeps only a number for each tensor; the first unpack() runs the function again.
#include <algorithm>
#include <mutex>

#include "core/autograd/autograd.h"
#include "core/autograd/history.h"
#include "core/autograd/interpreter.h"
#include "core/autograd/saved.h"
#include "core/tensor/generator.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

using autograd::PackHook;
using autograd::PackScope;
using autograd::SavedTensor;
using autograd::Unpack;

// Restores the state of the default generator at the end of its life.
class RandomScope {
 public:
  explicit RandomScope(bool restores) : restores_(restores) {
    if (restores_) before_ = default_generator().state();
  }
  ~RandomScope() {
    if (restores_) default_generator().set_state(before_);
  }
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

 private:
  bool restores_;
  RandomRange before_;
};

// One call of a function. The closures of its saved tensors keep it alive. Threads: any.
class Call : public std::enable_shared_from_this<Call> {
 public:
  Call(std::function<TensorList(const TensorList&)> function, const TensorList& inputs, bool keep_random_state)
      : function_(std::move(function)), keep_random_state_(keep_random_state), inputs_(inputs.size()) {
    if (keep_random_state_) random_ = default_generator().state();
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs_[i].keep(autograd::without_history(inputs[i]), "checkpoint");
      wanted_.push_back(static_cast<bool>(autograd::edge_of(inputs[i]).node));
    }
  }

  TensorList first_run(const TensorList& inputs) {
    const PackHook hook{[this](const Tensor& tensor) { return note(tensor); }, true};
    const PackScope scope(&hook);
    return function_(inputs);
  }

 private:
  // The metadata of a tensor that the first run saved.
  struct Seen {
    Dims dims;
    DType dtype;
    uint64_t version;  // number of writes; if the second run has another number, its tensors would differ
  };

  Unpack note(const Tensor& tensor) {
    seen_.push_back({tensor.impl()->dims, tensor.dtype(), write_count(tensor)});
    return [call = shared_from_this(), at = seen_.size() - 1] { return call->take(at); };
  }

  // The tensor that was saved as number `at`. The list gives it up, so that it lives only as long as it is used.
  Tensor take(size_t at) {
    const std::lock_guard lock(mutex_);
    if (values_.empty() || !values_[at].defined()) run_again();
    return std::exchange(values_[at], Tensor());
  }

  void run_again() {
    TensorList inputs;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      inputs.push_back(inputs_[i].get("checkpoint", "an argument").detach());
      if (wanted_[i]) inputs.back().requires_grad_();
    }
    values_.clear();
    const RandomScope random(keep_random_state_);
    if (keep_random_state_) default_generator().set_state(random_);
    const PackHook hook{[this](const Tensor& tensor) { return collect(tensor); }, true};
    const PackScope scope(&hook);
    autograd::GradientInterpreter gradients(autograd::interpreter_below());
    const InterpreterScope interpreter(gradients);
    function_(inputs);
    if (values_.size() != seen_.size())
      differ("{} tensors were saved at first, and {} now", seen_.size(), values_.size());
  }

  Unpack collect(const Tensor& tensor) {
    const size_t at = values_.size();
    if (at == seen_.size()) differ("{} tensors were saved at first, and more now", at);
    const Seen& seen = seen_[at];
    if (seen.dtype != tensor.dtype() || !(seen.dims == tensor.impl()->dims)) {
      differ("tensor {} that was saved was {} {} at first, and is {} {} now", at, dtype_name(seen.dtype), seen.dims,
             dtype_name(tensor.dtype()), tensor.impl()->dims);
    }
    if (seen.version != write_count(tensor)) {
      differ("a tensor of shape {} that it uses was written since, by {}", seen.dims, last_writer(tensor));
    }
    values_.push_back(tensor);
    return []() -> Tensor {
      throw Error(Subject{"checkpoint"}, Code::internal, "backward runs through a tensor that was recomputed.");
    };
  }

  template <class... Parts>
  [[noreturn]] static void differ(fmt::format_string<const Parts&...> text, const Parts&... parts) {
    throw Error(Subject{"checkpoint"}, Code::invalid_argument,
                fmt::format("backward runs the function again, which now does something else: {}.",
                            fmt::format(text, parts...)),
                "Let the function depend on its arguments alone, and write nothing that it uses before backward.");
  }

  std::function<TensorList(const TensorList&)> function_;
  bool keep_random_state_;
  RandomRange random_;
  std::vector<SavedTensor> inputs_;
  std::vector<bool> wanted_;
  std::vector<Seen> seen_;
  std::mutex mutex_;
  TensorList values_;  // guarded by mutex; tensors of the second run, undefined once taken
};

}  // namespace

TensorList run_checkpointed(std::function<TensorList(const TensorList&)> function, const TensorList& inputs,
                            const CheckpointOptions& options) {
  for (const Tensor& input : inputs) {
    if (!input.defined())
      throw Error(Subject{"checkpoint"}, Code::invalid_argument, "an argument is an undefined tensor.");
  }
  if (!autograd::remembers()) return function(inputs);
  return std::make_shared<Call>(std::move(function), inputs, options.keep_random_state)->first_run(inputs);
}

}  // namespace tenon
