// A function of tensors as a program by itself, for callers that write it elsewhere: exporters of models.
#pragma once

#include <functional>
#include <string>

#include "core/device/export.h"
#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace tenon::lazy {

// Calls `function` once, without gradients, on values that look like `examples`, whose elements nobody reads. Sizes are
// symbols of the graph unless the function decided by them. An op for which `lacks` is true is recorded as its
// decomposition, if it has one. `name` is what errors call the function. Gives the program before all passes: its
// inputs are the arguments of the function, and tensors from outside are its constants. Errors: those of the function;
// invalid_argument: what a recording cannot see; unsupported: the function writes tensors from outside, leaves
// gradients on leaves, or draws random numbers.
TENON_API graph::Graph record_program(const std::function<TensorList(const TensorList&)>& function,
                                      const std::string& name, const TensorList& examples,
                                      const std::function<bool(const OpInfo&)>& lacks);

// What a writer asks of the sizes of a program.
class TENON_API ProgramSizes {
 public:
  explicit ProgramSizes(graph::Graph& graph) : arena_(graph.arena()) {}

  const symbolic::Arena& arena() const { return arena_; }
  // `size`, as short as it is known.
  SymDim resolve(SymDim size);
  SymDims resolve(const SymDims& sizes);
  // What an expression is made of.
  const symbolic::Node& node(SymDim size) const;
  // Whether `size` is known to be at least 0.
  bool is_natural(SymDim size) const;
  // From now on `size` is the number that it was for the examples, and so are the symbols in it. Gives this number.
  int64_t fix(SymDim size);

 private:
  symbolic::Arena& arena_;
};

}  // namespace tenon::lazy
