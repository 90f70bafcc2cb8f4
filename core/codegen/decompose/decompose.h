// Decomposes nodes of a graph for the compiler: an op that can be written in maps and reductions is replaced by them,
// with the functions of the ladder's second rung (core/ops/decompose).
#pragma once

#include "core/device/export.h"
#include "core/graph/graph.h"

namespace tenon::codegen {

// Replaces each node of `graph` whose role is `rows` (axes/access.h) by its decomposition. A node whose decomposition
// depends on size hints stays.
TENON_API void decompose_rows(graph::Graph* graph);

}  // namespace tenon::codegen
