// The verifier of graphs. Tests and debug builds run it after every pass; the parser checks each node by it.
#pragma once

#include "core/device/export.h"
#include "core/graph/graph.h"
#include "primitives/status/status.h"

namespace tenon::graph {

// Checks that `graph` is one: each node is a record of its op, reads values that were made before it, and its results
// have the types of the op's rule; uses and inputs agree.
// Errors: invalid_argument: "%7 = add: it reads %9, which is made after it."
TENON_API Status verify(Graph& graph);

}  // namespace tenon::graph
