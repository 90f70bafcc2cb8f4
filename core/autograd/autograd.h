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

// Calls hook(gradient) once in each backward, when the gradient of `tensor` is complete; a defined result takes its
// place. Runs on the thread that called backward, after the ops were submitted. Errors: invalid_argument (the tensor
// wants no gradient), and in backward if it is recorded or the result has another shape or dtype.
TENON_API void register_hook(const Tensor& tensor, std::function<Tensor(const Tensor&)> hook);
// Calls hook() each time after a backward has added to grad() of `leaf`.
TENON_API void register_hook_after_accumulation(const Tensor& leaf, std::function<void()> hook);

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

 private:
  friend TensorList call_function(std::shared_ptr<Function> function, const TensorList& inputs);
  struct State;
  std::shared_ptr<State> state_;
};

// Calls the function, and remembers it if an input wants a gradient. Errors: invalid_argument (more than 64 inputs, an
// undefined input or result).
TENON_API TensorList call_function(std::shared_ptr<Function> function, const TensorList& inputs);

}  // namespace tenon
