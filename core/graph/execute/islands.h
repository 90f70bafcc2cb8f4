// Islands: the parts of an executable that its devices take as whole graphs.
#pragma once

#include "core/graph/execute/executable.h"

namespace tenon::graph {

// Asks each device of `program` which ops it takes in whole graphs, has each part compiled and puts one step in place
// of its steps. The other steps stay, each with the reason (Step::alone). A device without the slots of whole graphs is
// not asked, and none is with TENON_GRAPHS=off. Throws the error of a compilation that failed, unless the device only
// refuses.
void take_islands(Executable* program);

}  // namespace tenon::graph
