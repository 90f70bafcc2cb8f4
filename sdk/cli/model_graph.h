// The graph that a command is given: recorded from a model, or read from a text.
#pragma once

#include "core/graph/graph.h"
#include "sdk/cli/commands.h"

namespace tenon::cli {

// Before any pass. Dims that options.sizes and options.run leave open are symbols.
graph::Graph read_graph(const GraphOptions& options);

}  // namespace tenon::cli
