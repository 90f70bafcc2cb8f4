// Gradients of what tensors were computed from, by running backward through the ops that made them.
//
//   const Tensor w = tenon::ones({3}).requires_grad_();
//   tenon::sum(w * x).backward();
//   w.grad();                                   // the elements of x
//
// An op whose arguments want no gradient costs nothing more; inside a NoGrad scope no op does. Results whose dtype is
// not floating want none. An op without a gradient refuses arguments that want one, and says why. Gradients are sums in
// a fixed order, so their bits do not depend on timing.
//
// Never a wrong gradient: an element that backward needs and that an op has written since is an error that names both
// ops. Writes through Tensor::data() and by foreign APIs are not seen.
//
// Threads: several threads may run backward of different graphs. Backward runs that share nodes use retain_graph. A
// leaf may take part in all of them.
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
  bool retain_graph = false;  // keeps what forward saved, so that another backward can follow
  bool create_graph = false;  // gives gradients that have gradients; keeps the graph too
};

struct GradOptions {
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;  // an input that the outputs do not depend on gives an undefined tensor, not an error
};

// Adds to grad() of every leaf behind `outputs` its gradient. gradients[i] weighs the elements of outputs[i]; an
// undefined one, or an empty list, stands for 1 where the output has one element. Errors: invalid_argument (an output
// wants no gradient; a weight of another shape or dtype; saved elements that were written, or are gone; inside an
// InferenceMode scope).
TENON_API void backward(const TensorList& outputs, const TensorList& gradients = {},
                        const BackwardOptions& options = {});

// The gradients of `outputs` with respect to each of `inputs`, leaves or not. Leaves accumulate nothing. Errors: those
// of backward; an input that wants no gradient; one that the outputs do not depend on.
TENON_API TensorList grad(const TensorList& outputs, const TensorList& inputs, const TensorList& gradients = {},
                          const GradOptions& options = {});

// A hook that was registered. Whoever drops the handle leaves the hook where it is. Threads: one at a time.
class TENON_API HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}
  // Removes the hook; a second time it does nothing. A backward that already runs may still call the hook.
  void remove() {
    if (remove_ != nullptr) std::exchange(remove_, nullptr)();
  }

 private:
  std::function<void()> remove_;
};

// Calls hook(gradient) once in each backward, when the gradient of `tensor` is complete; a defined result takes its
// place. Runs on the thread that called backward, after the ops were submitted. Errors: invalid_argument (the tensor
// wants no gradient), and in backward if it is recorded or the result has another shape or dtype.
TENON_API HookHandle register_hook(const Tensor& tensor, std::function<Tensor(const Tensor&)> hook);
// Calls hook() each time after a backward has added to grad() of `leaf`. Errors: invalid_argument (no leaf that wants a
// gradient), and in backward if it is recorded.
TENON_API HookHandle register_hook_after_accumulation(const Tensor& leaf, std::function<void()> hook);

namespace autograd {
struct PackHook;
}

// While it lives, what the calling thread's ops save for backward goes through the user's hands: pack(tensor) is called
// when an op saves `tensor`, and gives a function that gives the tensor back in backward, each time somebody asks. So a
// tensor may wait elsewhere: on another device, in a file, in fewer bits. The innermost scope counts, and none inside
// of the two functions, whose ops are not remembered. `tensor` has no history. If the function keeps it, a write into
// it is seen, as without hooks.
// Errors: what the functions throw; invalid_argument, in backward if the tensor that comes back has another shape,
// dtype or device, and in forward inside a recording.
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

// While it lives, the calling thread looks for the op that is to blame for a bad gradient. Ops note where they are
// called: inside of which other op, in which labelled part of a program, and what `where` gives (a stack trace of the
// caller's language). A backward that fails, or in which an op gives a NaN, then throws an error that names the op of
// forward and what it noted. Slow, since each gradient is read. Errors, in backward: invalid_argument (a NaN);
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

// While it lives, ops of the calling thread are not remembered: their results want no gradient, and leaves may be
// written.
class TENON_API NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  std::unique_ptr<InterpreterScope> scope_;
};

// As NoGrad; and whoever asks for a gradient inside, by requires_grad_ or backward, gets an error.
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

// A function of the user with a gradient of its own. One object serves one call.
class TENON_API Function {
 public:
  virtual ~Function();
  // What errors call it.
  virtual std::string name() const = 0;
  // The results. Its ops are not remembered.
  virtual TensorList forward(const TensorList& inputs) = 0;
  // The gradients of the inputs, undefined where there is none, from those of the results, which are all defined. Its
  // ops are remembered if the backward that runs creates a graph.
  virtual TensorList backward(const TensorList& gradients) = 0;

 protected:
  // In forward: keeps a tensor for backward, where saved(i) gives the i-th one. Throws invalid_argument there if the
  // tensor was written since.
  void save(const Tensor& tensor);
  Tensor saved(size_t i) const;
  // In backward: whether somebody needs the gradient of input `i`.
  bool wants(size_t i) const;

 private:
  friend TensorList call_function(std::shared_ptr<Function> function, const TensorList& inputs);
  struct State;
  std::shared_ptr<State> state_;
};

// Calls the function, and remembers it if an input wants a gradient. Errors: invalid_argument (more than 64 inputs, an
// undefined input or result).
TENON_API TensorList call_function(std::shared_ptr<Function> function, const TensorList& inputs);

struct CheckpointOptions {
  bool keep_random_state = true;  // the second run draws the random numbers of the first one
};

// Calls function(inputs), and saves nothing of what its ops save: backward runs the function again to get it. The
// function must do the same each time, and may use tensors that are no arguments. Writing an argument, or a tensor that
// the function uses, before backward is an error then. Checkpoints may stand in each other.
// Errors: those of the function; invalid_argument, in backward if the second run saves other tensors than the first.
TENON_API TensorList run_checkpointed(std::function<TensorList(const TensorList&)> function, const TensorList& inputs,
                                      const CheckpointOptions& options = {});

// `function`, of tensors or of a TensorList, with a Tensor or a TensorList as its result, as a function that runs it
// so:
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
