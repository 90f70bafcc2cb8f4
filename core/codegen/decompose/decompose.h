// Decompositions of a graph's nodes, for the compiler: ops that are written in maps and reductions are taken apart by
// the functions that the ladder's second rung calls (core/ops/decompose).
#pragma once

#include "core/device/export.h"
#include "core/graph/graph.h"

namespace tenon::codegen {

// Takes each node of `graph` with the role `rows` (axes/access.h) apart. A node whose decomposition depends on the
// hints of sizes stays as it is.
TENON_API void decompose_rows(graph::Graph* graph);

}  // namespace tenon::codegen
