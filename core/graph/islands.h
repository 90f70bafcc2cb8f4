// Islands: the parts of a recorded program that a device takes as whole graphs.
#pragma once

#include "core/device/export.h"
#include "core/graph/graph.h"
#include "core/tensor/device.h"

namespace tenon::graph {

// Asks `device`, where the inputs of `graph` lie, which ops it takes in whole graphs, has each part compiled and puts
// one step in place of its steps. The other steps stay, each with the reason (Step::alone). A device without the slots
// of whole graphs is not asked, and none is with TENON_GRAPHS=off. Constants of the program must not change from now
// on. Throws the error of a compilation that failed, unless the device only refuses.
TENON_API void take_islands(Graph* graph, Device device);

}  // namespace tenon::graph
