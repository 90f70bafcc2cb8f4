// Islands: the parts of an executable that devices run as whole graphs.
#pragma once

#include "core/graph/execute/executable.h"

namespace tenon::graph {

// Asks each device of `program` which ops it takes in whole graphs, compiles each part and replaces its steps by one
// step. The other steps stay, each with the reason in Step::alone. Devices without the functions for whole graphs are
// not asked; TENON_GRAPHS=off asks none. Throws the error of a failed compilation, but not a refusal by the device.
void take_islands(Executable* program);

}  // namespace tenon::graph
