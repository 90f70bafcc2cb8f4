#include "core/graph/liveness.h"

#include <algorithm>
#include <vector>

namespace tenon::graph {

void drop_unneeded_steps(Graph* graph) {
  std::vector<bool> needed(graph->values.size(), false);
  for (uint32_t id : graph->outputs) needed[id] = true;
  std::vector<Step> kept;
  for (size_t i = graph->steps.size(); i-- > 0;) {
    Step& step = graph->steps[i];
    const bool wanted =
        step.in_place || std::any_of(step.outputs.begin(), step.outputs.end(), [&](uint32_t id) { return needed[id]; });
    if (!wanted) continue;
    for (uint32_t id : step.inputs) needed[id] = true;
    for (uint32_t id : step.outputs) needed[id] = needed[id] || step.in_place;
    kept.push_back(std::move(step));
  }
  std::reverse(kept.begin(), kept.end());
  graph->steps = std::move(kept);
}

void find_last_uses(Graph* graph) {
  std::vector<bool> seen(graph->values.size(), false);
  for (uint32_t id : graph->outputs) seen[id] = true;
  for (size_t i = graph->steps.size(); i-- > 0;) {
    Step& step = graph->steps[i];
    step.drops.clear();
    for (const std::vector<uint32_t>* ids : {&step.inputs, &step.outputs}) {
      for (uint32_t id : *ids) {
        if (id == 0 || seen[id] || graph->values[id].constant.defined()) continue;
        seen[id] = true;
        step.drops.push_back(id);
      }
    }
  }
}

}  // namespace tenon::graph
