#include <algorithm>

#include "core/graph/folding.h"
#include "core/graph/passes/hint_call.h"
#include "core/graph/passes/passes.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

bool all_known(const Graph& graph, const Node& node) {
  const auto known = [&](ValueId id) { return id == 0 || graph[id].constant.defined(); };
  return !node.inputs.empty() && node.patches.empty() && node.regions.empty() &&
         std::all_of(node.inputs.begin(), node.inputs.end(), known);
}

bool worth_its_memory(const Graph& graph, const Node& node) {
  int64_t read = 0, made = 0;
  for (ValueId id : node.inputs) read += id == 0 ? 0 : graph[id].constant.elements();
  for (ValueId id : node.results) {
    int64_t elements = 1;
    for (SymDim dim : graph[id].dims) elements *= dim.number();
    made += elements;
  }
  return worth_folding(made, read);
}

TensorList computed(const Graph& graph, const Node& node) {
  std::vector<const Tensor*> inputs;
  for (ValueId id : node.inputs) inputs.push_back(id == 0 ? nullptr : &graph[id].constant);
  TensorList results(node.results.size());
  OpCall call = call_of(node);
  call.inputs = inputs;
  call.outputs = results;
  eager_interpreter().apply(call);
  return results;
}

}  // namespace

void fold_constants(Graph* graph, const PassOptions&) {
  for (NodeId id = graph->first(); id != kNoNode;) {
    const NodeId after = graph->next(id);
    if (all_known(*graph, graph->node(id)) && worth_its_memory(*graph, graph->node(id))) {
      const TensorList results = computed(*graph, graph->node(id));
      const std::vector<ValueId> old = graph->node(id).results;
      for (size_t i = 0; i < results.size(); ++i) graph->replace(old[i], graph->add_constant(results[i]));
      graph->erase(id);
    }
    id = after;
  }
}

}  // namespace tenon::graph
