// A function of tensors as a standalone program, for callers that write it in another form, such as exporters of
// models.
#pragma once

#include <functional>
#include <string>

#include "core/device/export.h"
#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace tenon::compilation {

// Records `function` once, without gradients, on values that look like `examples`. Their elements are not read. Sizes
// are symbols of the graph unless the function reads them as numbers. An op for which `lacks` is true is recorded as
// its decomposition if it has one. Errors call the function `name`. Returns the program before all passes: its inputs
// are the arguments of the function, and tensors from outside are its constants. Errors: those of the function;
// invalid_argument for anything that a recording cannot see; unsupported if the function writes tensors from outside,
// leaves gradients on leaves, or draws random numbers.
TENON_API graph::Graph record_program(const std::function<TensorList(const TensorList&)>& function,
                                      const std::string& name, const TensorList& examples,
                                      const std::function<bool(const OpInfo&)>& lacks);

// The sizes of a program, for code that writes it.
class TENON_API ProgramSizes {
 public:
  explicit ProgramSizes(graph::Graph& graph) : arena_(graph.arena()) {}

  const symbolic::Arena& arena() const { return arena_; }
  // Simplified sizes.
  SymDim resolve(SymDim size);
  SymDims resolve(const SymDims& sizes);
  // The top node of an expression.
  const symbolic::Node& node(SymDim size) const;
  // True if `size` is known to be at least 0.
  bool is_natural(SymDim size) const;
  // Fixes `size`, and the symbols in it, to its number for the examples. Returns this number.
  int64_t fix(SymDim size);

 private:
  symbolic::Arena& arena_;
};

}  // namespace tenon::compilation
