// The verifier of graphs. Tests and debug builds run it after every pass; the parser checks each node with it.
#pragma once

#include "core/device/export.h"
#include "core/graph/graph.h"
#include "primitives/status/status.h"

namespace tenon::graph {

// Checks that `graph` is well formed: each node is a valid record of its op, reads only earlier values, and has results
// of the types that the op's rule gives; uses and inputs agree. Errors: invalid_argument, such as "%7 = add: it reads
// %9, which is made after it."
TENON_API Status verify(Graph& graph);

}  // namespace tenon::graph
