// Lowering: a fusion group, as a graph of its own, becomes one kernel of loop IR, unscheduled.
#pragma once

#include <string>

#include "core/codegen/loop/ir.h"
#include "core/device/export.h"
#include "core/graph/graph.h"

namespace tenon::codegen {

// The kernel `name` that computes the outputs of `region`. Its buffers are the inputs of the region and then its
// outputs, row-major; its parameters are the symbols that it needs, as sizes of the region's arena. Nodes that are
// written in maps and reductions are taken apart, so `region` changes.
// Errors: unsupported, for what no stage can compute: a reduction that is read at other places than it is made.
TENON_API Kernel lower(graph::Graph* region, std::string name);

}  // namespace tenon::codegen
