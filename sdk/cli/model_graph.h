// The graph that a command is given: recorded from a model, or read from a text.
#pragma once

#include "core/graph/graph.h"
#include "core/symbolic/values.h"
#include "sdk/cli/commands.h"

namespace tenon::cli {

// Before any pass. Dims that options.sizes and options.run leave open are symbols.
graph::Graph read_graph(const GraphOptions& options);

// Runs the passes up to and with options.pass; all of them if it is empty, none if it is "none".
void rewrite_graph(graph::Graph* graph, const GraphOptions& options);
// The symbols of a graph with the values that `given` has (S0=4), else their hints. Errors: a guard that does not hold.
symbolic::Values sizes_of_graph(const graph::Graph& graph, const std::vector<std::string>& given);

}  // namespace tenon::cli
