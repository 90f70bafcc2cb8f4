// Liveness: which steps of a graph are needed, and which step uses a value last. Internal to core/graph/execute.
#pragma once

#include "core/graph/execute/executable.h"

namespace tenon::graph {

// Removes the steps that the outputs do not need.
void drop_unneeded_steps(Executable* program);
// Sets Step::drops: each value is dropped by the last step that reads or makes it.
void find_last_uses(Executable* program);

}  // namespace tenon::graph
