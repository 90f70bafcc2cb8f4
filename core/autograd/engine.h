// The engine of backward. Internal.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "core/autograd/node.h"
#include "core/device/call_context.h"

namespace tenon::autograd {

// A gradient that backward starts with.
struct Root {
  Edge edge;
  Tensor gradient;
};

// A gradient to return instead of accumulating it.
struct Capture {
  Edge edge;
  Tensor gradient;  // undefined until it is computed
};

struct EngineOptions {
  bool retain_graph = false;
  bool create_graph = false;
  // Only the gradients of the captures are computed; leaves accumulate nothing.
  bool only_captures = false;
  // The engine does not run the hooks of captures; the code that passes their gradients on runs them.
  bool hooks_later = false;
};

// Knows the nodes that existed before a recording began. Backward inside the recording may return gradients of these
// nodes, if they are captured, but runs none of them.
class Boundary {
 public:
  virtual ~Boundary() = default;
  virtual bool outside(const Node& node) const = 0;
};

using BoundaryScope = ContextScope<&CallContext::boundary>;

// Runs the nodes behind `roots` once each, the greatest number first. Ops run under the interpreter below gradients or,
// to create a graph, under the one that records gradients. Throws the first error of a node and names the op of
// forward; invalid_argument if a node outside the boundary would have to run.
void run_backward(std::span<const Root> roots, std::span<Capture> captures, const EngineOptions& options);

// For each of `captures`, true if a gradient that flows into `from` may reach it.
std::vector<bool> reached(const Edge& from, std::span<const Capture> captures);

// True while the calling thread runs a backward that creates a graph.
bool creates_graph();
// True inside an InferenceMode scope of the calling thread.
bool is_inferring();

}  // namespace tenon::autograd
