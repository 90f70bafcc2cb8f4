// Liveness: which steps of a graph are needed, and which step uses a value last. Internal to core/graph.
#pragma once

#include "core/graph/graph.h"

namespace tenon::graph {

// Removes the steps that the outputs do not need.
void drop_unneeded_steps(Graph* graph);
// Sets Step::drops: each value is dropped by the last step that reads or makes it.
void find_last_uses(Graph* graph);

}  // namespace tenon::graph
