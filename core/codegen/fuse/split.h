// Reductions of few items and many elements, as two reductions: the first one has items enough for a whole device.
// Internal to core/codegen.
#pragma once

#include "core/graph/graph.h"

namespace tenon::codegen {

// Splits sums, means and extremes whose input a kernel would compute: over all axes but the first one that they reduce,
// and then over that one. A variance beside its mean is one of each part, about the part's own mean, and of the parts'
// means; so both need the data once. What is read from memory as it is stays one reduction.
void split_reductions(graph::Graph* graph);

}  // namespace tenon::codegen
