// The engine of backward. Internal.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "core/autograd/node.h"

namespace tenon::autograd {

// A gradient to begin with.
struct Root {
  Edge edge;
  Tensor gradient;
};

// A gradient to give back, not to accumulate.
struct Capture {
  Edge edge;
  Tensor gradient;  // undefined until it is there
};

struct EngineOptions {
  bool retain_graph = false;
  bool create_graph = false;
  // Only the gradients of the captures are computed; leaves accumulate nothing.
  bool only_captures = false;
  // The engine does not run the hooks of captures; the code that passes their gradients on runs them.
  bool hooks_later = false;
};

// Knows the nodes that were there before a recording began. Backward inside it may give gradients to them, if they are
// captured, and runs none of them.
class Boundary {
 public:
  virtual ~Boundary() = default;
  virtual bool outside(const Node& node) const = 0;
};

// That of the calling thread; null: nothing is recorded.
inline thread_local constinit const Boundary* boundary = nullptr;

class BoundaryScope {
 public:
  explicit BoundaryScope(const Boundary* inside) : before_(std::exchange(boundary, inside)) {}
  ~BoundaryScope() { boundary = before_; }
  BoundaryScope(const BoundaryScope&) = delete;
  BoundaryScope& operator=(const BoundaryScope&) = delete;

 private:
  const Boundary* before_;
};

// Runs the nodes behind `roots` once each, from the greatest number down. Ops run under the interpreter below gradients
// or, to create a graph, under one that remembers. Throws the first error of a node, with the op of forward named;
// invalid_argument, if a node outside of the boundary would run.
void run_backward(std::span<const Root> roots, std::span<Capture> captures, const EngineOptions& options);

// For each of `captures`, whether a gradient that comes to `from` may reach it.
std::vector<bool> reached(const Edge& from, std::span<const Capture> captures);

// True while the calling thread runs a backward that creates a graph.
bool creates_graph();
// True inside an InferenceMode scope of the calling thread.
bool is_inferring();

}  // namespace tenon::autograd
