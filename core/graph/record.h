// Checks the record of a node. Functors make these checks when ops are called on tensors; a graph from a file or a pass
// has no functor. Internal to core/graph.
#pragma once

#include "core/graph/graph.h"
#include "primitives/status/status.h"

namespace tenon::graph {

// Checks the assumptions of the ops' rules on `node`: its arguments, their ranks and dtypes, its attributes, and the
// number of results. The inputs are values of `graph`. Errors: invalid_argument, such as "its axis is 3, but its first
// argument has rank 2".
Status check_record(Graph& graph, const Node& node, size_t results);

}  // namespace tenon::graph
