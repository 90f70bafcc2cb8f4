// The engine of backward. Internal.
#pragma once

#include <span>
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
};

// Runs the nodes behind `roots` once each, from the greatest number down. Ops run under the interpreter below gradients
// or, to create a graph, under one that remembers. Throws the first error of a node, with the op of forward named.
void run_backward(std::span<const Root> roots, std::span<Capture> captures, const EngineOptions& options);

// True while the calling thread runs a backward that creates a graph.
bool creates_graph();

}  // namespace tenon::autograd
