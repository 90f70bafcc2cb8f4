// Lowering: turns a fusion group, given as a graph, into one unscheduled kernel of loop IR.
#pragma once

#include <string>

#include "core/codegen/loop/ir.h"
#include "core/device/export.h"
#include "core/graph/graph.h"

namespace tenon::codegen {

// The kernel `name` that computes the outputs of `region`. Its buffers are the inputs of the region and then its
// outputs, row-major; its parameters are the symbols that it needs, as sizes of the region's arena. Changes `region`:
// nodes that can be written in maps and reductions are decomposed. Errors: unsupported if no stage can compute a node,
// such as a reduction that is read at other points than it is computed.
TENON_API Kernel lower(graph::Graph* region, std::string name);

}  // namespace tenon::codegen
