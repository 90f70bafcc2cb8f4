#include <map>

#include "core/graph/passes/match.h"
#include "core/graph/passes/passes.h"
#include "ep_api/ep_api.h"

namespace tenon::graph {

std::vector<uint64_t> key_of(const Node& node) {
  std::vector<uint64_t> key{node.op->id, static_cast<uint64_t>(node.precision),
                            reinterpret_cast<uintptr_t>(node.device), node.results.size(), node.inputs.size()};
  key.insert(key.end(), node.inputs.begin(), node.inputs.end());
  for (const Scalar& scalar : node.scalars) {
    key.push_back(static_cast<uint64_t>(scalar.dtype()));
    key.push_back(scalar.to_abi(scalar.dtype()).value.u64);
  }
  key.push_back(node.attributes.size());
  key.insert(key.end(), node.attributes.begin(), node.attributes.end());
  for (const Patch& patch : node.patches) {
    key.push_back(patch.word);
    key.push_back(patch.size.word());
  }
  for (const Epilogue& epilogue : node.epilogues) {
    key.push_back(epilogue.op->id);
    key.push_back(static_cast<uint64_t>(static_cast<uint16_t>(epilogue.input)) << 16 |
                  static_cast<uint16_t>(epilogue.scalar));
  }
  return key;
}

void merge_common(Graph* graph, const PassOptions&) {
  std::map<std::vector<uint64_t>, NodeId> first;
  for (NodeId id = graph->first(); id != kNoNode;) {
    const NodeId after = graph->next(id);
    if (!graph->node(id).regions.empty()) {  // equal regions would have to be found by their texts
      id = after;
      continue;
    }
    const auto [same, fresh] = first.emplace(key_of(graph->node(id)), id);
    if (!fresh) {
      const std::vector<ValueId> results = graph->node(id).results;
      for (size_t i = 0; i < results.size(); ++i) graph->replace(results[i], graph->node(same->second).results[i]);
      graph->erase(id);
    }
    id = after;
  }
}

}  // namespace tenon::graph
