// Liveness: finds the steps of a graph that are needed, and the last reader of each value. Internal to
// core/graph/execute.
#pragma once

#include "core/graph/execute/executable.h"

namespace tenon::graph {

// Removes the steps that the outputs do not need.
void drop_unneeded_steps(Executable* program);
// Sets Step::drops: each value is dropped by the last step that reads or writes it.
void find_last_uses(Executable* program);

}  // namespace tenon::graph
