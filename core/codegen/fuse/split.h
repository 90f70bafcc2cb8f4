// Splits a reduction of many elements to few items into two reductions. The first one has enough items for a whole
// device. Internal to core/codegen.
#pragma once

#include "core/graph/graph.h"

namespace tenon::codegen {

// Splits sums, means and extremes whose input the same kernel would compute: first over all reduced axes except the
// first one, then over that one. A variance together with its mean becomes a variance per part, about the part's mean,
// and the variance of those means; so both need only one pass over the data. A reduction that reads its input from
// memory is not split.
void split_reductions(graph::Graph* graph);

}  // namespace tenon::codegen
