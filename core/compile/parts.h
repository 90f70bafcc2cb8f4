// Parts: the programs of a function that cannot be one program. Where the host reads an element, the program recorded
// so far runs, and the function continues eagerly. C++ code cannot start in the middle, so such a function is called
// each time; equal programs are prepared once. Internal.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/compile/compile.h"
#include "core/graph/execute/executable.h"
#include "core/graph/graph.h"
#include "core/graph/recent.h"

namespace tenon::compilation {

class Parts {
 public:
  explicit Parts(const CompileOptions& options) : options_(options) {}

  // Runs `program`, with the executable of an equal earlier program if there is one. `bound`: as in graph::run.
  TensorList run(graph::Graph program, std::span<const Tensor> arguments, std::span<const Tensor> bound);
  // True after a program has run. From then on every call calls the function.
  bool used() const;
  // True if there are so many programs that eager runs are better.
  bool full() const;
  size_t size() const;

 private:
  using Sizes = std::vector<int64_t>;  // the sizes of all arguments
  struct Part {
    graph::Graph recorded;
    graph::Recent<Sizes, std::shared_ptr<const graph::Executable>> executables{graph::kMostExecutables};
  };

  std::shared_ptr<const graph::Executable> executable_of(graph::Graph program, std::span<const Tensor> arguments);

  const CompileOptions& options_;
  mutable std::mutex mutex_;
  std::vector<Part> parts_;  // mutex
  bool used_ = false;        // mutex
  bool full_ = false;        // mutex
};

// True if both compute the same from their inputs.
bool same_program(const graph::Graph& a, const graph::Graph& b);

}  // namespace tenon::compilation
