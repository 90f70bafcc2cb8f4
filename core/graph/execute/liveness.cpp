#include "core/graph/execute/liveness.h"

#include <algorithm>
#include <vector>

namespace tenon::graph {

void drop_unneeded_steps(Executable* program) {
  std::vector<bool> needed(program->values.size(), false);
  for (uint32_t id : program->outputs) needed[id] = true;
  std::vector<Step> kept;
  for (size_t i = program->steps.size(); i-- > 0;) {
    Step& step = program->steps[i];
    const bool wanted = std::any_of(step.outputs.begin(), step.outputs.end(), [&](uint32_t id) { return needed[id]; });
    if (!wanted) continue;
    for (uint32_t id : step.inputs) needed[id] = true;
    kept.push_back(std::move(step));
  }
  std::reverse(kept.begin(), kept.end());
  program->steps = std::move(kept);
}

void find_last_uses(Executable* program) {
  std::vector<bool> seen(program->values.size(), false);
  for (uint32_t id : program->outputs) seen[id] = true;
  for (size_t i = program->steps.size(); i-- > 0;) {
    Step& step = program->steps[i];
    step.drops.clear();
    for (const std::vector<uint32_t>* ids : {&step.inputs, &step.outputs}) {
      for (uint32_t id : *ids) {
        if (id == 0 || seen[id] || program->values[id].constant.defined()) continue;
        seen[id] = true;
        step.drops.push_back(id);
      }
    }
  }
}

}  // namespace tenon::graph
