// The graph that a command works on: recorded from a model, or read from a text.
#pragma once

#include "core/graph/graph.h"
#include "core/symbolic/values.h"
#include "sdk/cli/commands.h"

namespace tenon::cli {

// Returns the graph before any pass. Dims that neither options.sizes nor options.run fixes are symbols.
graph::Graph read_graph(const GraphOptions& options);

// Runs the passes up to and including options.pass; all passes if it is empty, none if it is "none".
void rewrite_graph(graph::Graph* graph, const GraphOptions& options);
// Returns the values of a graph's symbols: those in `given` (S0=4), else the hints. Errors: a guard that does not hold.
symbolic::Values sizes_of_graph(const graph::Graph& graph, const std::vector<std::string>& given);

}  // namespace tenon::cli
