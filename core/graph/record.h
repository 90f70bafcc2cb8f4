// What the record of a node must have. Functors see to it where tensors are given to ops; a graph from a file or out of
// a pass has no functor. Internal to core/graph.
#pragma once

#include "core/graph/graph.h"
#include "primitives/status/status.h"

namespace tenon::graph {

// Checks what the rules of ops take for granted: which arguments `node` has, of which ranks and dtypes, which
// attributes it has, and how many results. The inputs are values of `graph`. Errors: invalid_argument: "its axis is 3,
// but its first argument has rank 2".
Status check_record(Graph& graph, const Node& node, size_t results);

}  // namespace tenon::graph
