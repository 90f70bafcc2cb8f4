// Gradients of outputs with respect to the tensors they were computed from. Backward runs through the ops that made
// them.
//
//   const Tensor w = tenon::ones({3}).requires_grad_();
//   tenon::sum(w * x).backward();
//   w.grad();                                   // the elements of x
//
// Ops are recorded for backward only if an argument requires a gradient and no NoGrad scope is open; other ops have no
// extra cost. Results whose dtype is not floating require none. An op without a gradient refuses arguments that require
// one, and says why. Gradients are summed in a fixed order, so their bits do not depend on timing.
// Saved elements are checked: if an op has overwritten an element that backward needs, backward fails and names both
// ops. Writes through Tensor::data() and by foreign APIs are not detected.
// Threads: several threads may run backward of different graphs at once. Backward runs that share nodes must use
// retain_graph. A leaf may be part of all of them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "core/device/export.h"
#include "core/tensor/tensor.h"

namespace tenon {

class InterpreterScope;

struct BackwardOptions {
  bool retain_graph = false;  // keeps the tensors that forward saved, so that backward can run again
  bool create_graph = false;  // makes the gradients differentiable; also keeps the graph
};

struct GradOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused =
      false;  // an input that the outputs do not depend on gets an undefined gradient instead of an error
};

// Adds to grad() of every leaf that `outputs` depend on. gradients[i] weighs the elements of outputs[i]; an undefined
// entry, or an empty list, means 1 and needs an output of one element. Errors: invalid_argument (an output requires no
// gradient; a weight of another shape or dtype; saved elements that were overwritten or dropped; a call inside an
// InferenceMode scope).
TENON_API void backward(const TensorList& outputs, const TensorList& gradients = {},
                        const BackwardOptions& options = {});

// The gradients of `outputs` with respect to each of `inputs`, which need not be leaves. Does not change grad() of any
// leaf. Errors: those of backward; an input that requires no gradient; an input that the outputs do not depend on.
TENON_API TensorList grad(const TensorList& outputs, const TensorList& inputs, const TensorList& gradients = {},
                          const GradOptions& options = {});

// A handle to a registered hook. Dropping the handle does not remove the hook. Threads: one at a time.
class TENON_API HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}
  // Removes the hook; a second call does nothing. A backward that already runs may still call the hook.
  void remove() {
    if (remove_ != nullptr) std::exchange(remove_, nullptr)();
  }

 private:
  std::function<void()> remove_;
};

// Calls hook(gradient) once in each backward, when the gradient of `tensor` is complete. If the hook returns a defined
// tensor, it replaces the gradient. Runs on the thread that called backward, after the ops were submitted. Errors:
// invalid_argument (the tensor requires no gradient); from backward, if it is being recorded or the returned tensor has
// another shape or dtype.
TENON_API HookHandle register_hook(const Tensor& tensor, std::function<Tensor(const Tensor&)> hook);
// Calls hook() each time a backward has added to grad() of `leaf`. Errors: invalid_argument (`leaf` is not a leaf that
// requires a gradient); from backward, if it is being recorded.
TENON_API HookHandle register_hook_after_accumulation(const Tensor& leaf, std::function<void()> hook);

namespace autograd {
struct PackHook;
}

// While this object lives, hooks of the user store the tensors that the calling thread's ops save for backward. When an
// op saves `tensor`, pack(tensor) is called. It returns a function that returns the tensor each time backward needs it.
// So a saved tensor may be kept on another device, in a file, or in fewer bits. Only the innermost scope is used, and
// none inside the two functions, whose ops are not recorded for backward. `tensor` has no history. If the function
// keeps the tensor itself, later writes into it are detected, as without hooks. Errors: those that the functions throw;
// invalid_argument from backward if the returned tensor has another shape, dtype or device, and from forward inside a
// recording.
class TENON_API SavedTensorHooks {
 public:
  explicit SavedTensorHooks(std::function<std::function<Tensor()>(const Tensor&)> pack);
  ~SavedTensorHooks();
  SavedTensorHooks(const SavedTensorHooks&) = delete;
  SavedTensorHooks& operator=(const SavedTensorHooks&) = delete;

 private:
  std::unique_ptr<autograd::PackHook> hook_;
  const autograd::PackHook* before_;
};

// While this object lives, the calling thread looks for the op that causes a bad gradient. Each op notes where it is
// called: inside which other op, in which labelled part of a program, and the text that `where` returns (a stack trace
// of the caller's language). If a backward then fails, or one of its ops returns a NaN, the error names the op of
// forward and its notes. Slow, since each gradient is read. Errors, from backward: invalid_argument (a NaN);
// unsupported (inside a recording).
class TENON_API DetectAnomaly {
 public:
  explicit DetectAnomaly(std::function<std::string()> where = {});
  ~DetectAnomaly();
  DetectAnomaly(const DetectAnomaly&) = delete;
  DetectAnomaly& operator=(const DetectAnomaly&) = delete;

 private:
  std::function<std::string()> where_;
  const std::function<std::string()>* before_;
};

// While this object lives, ops of the calling thread are not recorded for backward: their results require no gradient,
// and leaves may be written.
class TENON_API NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  std::unique_ptr<InterpreterScope> scope_;
};

// Like NoGrad, and inside it requires_grad_ and backward are errors.
class TENON_API InferenceMode {
 public:
  InferenceMode();
  ~InferenceMode();
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;

 private:
  NoGrad no_grad_;
  bool before_;
};

// A function of the user with its own gradient. One object serves one call.
class TENON_API Function {
 public:
  virtual ~Function();
  // The name of the function in errors.
  virtual std::string name() const = 0;
  // Computes the results. Its ops are not recorded for backward.
  virtual TensorList forward(const TensorList& inputs) = 0;
  // Computes the gradients of the inputs from the gradients of the results, which are all defined. An undefined entry
  // means no gradient. Its ops are recorded if the running backward creates a graph.
  virtual TensorList backward(const TensorList& gradients) = 0;

 protected:
  // In forward: keeps a tensor for backward, where saved(i) returns the i-th saved one. saved(i) throws
  // invalid_argument if the tensor was written since.
  void save(const Tensor& tensor);
  Tensor saved(size_t i) const;
  // In backward: true if the gradient of input `i` is needed.
  bool wants(size_t i) const;

 private:
  friend TensorList call_function(std::shared_ptr<Function> function, const TensorList& inputs);
  struct State;
  std::shared_ptr<State> state_;
};

// Calls the function, and records it for backward if an input requires a gradient. Errors: invalid_argument (more than
// 64 inputs; an undefined input or result).
TENON_API TensorList call_function(std::shared_ptr<Function> function, const TensorList& inputs);

struct CheckpointOptions {
  bool keep_random_state = true;  // the second run draws the same random numbers as the first
};

// Calls function(inputs) without keeping the tensors that its ops save; backward runs the function again to get them.
// The function must do the same each time. It may use tensors that are not arguments. Before backward, neither an
// argument nor such a tensor may be written; that is an error. Checkpoints may be nested. Errors: those of the
// function; from backward invalid_argument, if the second run saves other tensors than the first.
TENON_API TensorList run_checkpointed(std::function<TensorList(const TensorList&)> function, const TensorList& inputs,
                                      const CheckpointOptions& options = {});

// Wraps `function` so that each call runs with run_checkpointed. `function` takes tensors or a TensorList and returns a
// Tensor or a TensorList:
//   const auto block = tenon::checkpoint([=](const Tensor& x) { return tenon::relu(tenon::matmul(x, w)); });
//   y = block(block(x));
template <class F>
auto checkpoint(F function, CheckpointOptions options = {}) {
  return [function = std::move(function), options](const auto&... inputs) {
    if constexpr (sizeof...(inputs) == 1 && (std::is_convertible_v<decltype(inputs), const TensorList&> && ...)) {
      return run_checkpointed(function, inputs..., options);
    } else {
      const auto with_list = [function](const TensorList& list) {
        return [&]<size_t... I>(std::index_sequence<I...>) { return TensorList{function(list[I]...)}; }
        (std::index_sequence_for<decltype(inputs)...>());
      };
      using Result = std::remove_cvref_t<std::invoke_result_t<const F&, decltype(inputs)...>>;
      TensorList results = run_checkpointed(with_list, {inputs...}, options);
      if constexpr (std::is_same_v<Result, Tensor>) {
        return Tensor(std::move(results[0]));
      } else {
        return results;
      }
    }
  };
}

}  // namespace tenon
