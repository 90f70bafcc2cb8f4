#include "core/compiler/loop/places.h"

#include <algorithm>

namespace tenon::compiler {
namespace {

void collect_reads(const Kernel& kernel, Id expr, std::set<Id>* seen, std::set<Id>* stages) {
  if (!seen->insert(expr).second) return;
  const Expr& each = kernel.exprs[expr];
  for (size_t i = 0; i < arg_count(each); ++i) collect_reads(kernel, each.args[i], seen, stages);
  if (each.kind != ExprKind::stage) return;
  if (kernel.stages[each.target].storage == Storage::inlined) {
    collect_reads(kernel, kernel.stages[each.target].value, seen, stages);
  } else {
    stages->insert(each.target);
  }
}

}  // namespace

Places::Places(const Kernel& kernel) : kernel_(kernel), places_(kernel.stages.size()), reads_(kernel.stages.size()) {
  std::vector<const Node*> around;
  walk(kernel.body, &around);
  for (size_t id = 0; id < kernel.stages.size(); ++id) {
    std::set<Id> seen;
    std::set<Id> stages;
    collect_reads(kernel, kernel.stages[id].value, &seen, &stages);
    reads_[id].assign(stages.begin(), stages.end());
  }
}

void Places::walk(const std::vector<Node>& nodes, std::vector<const Node*>* around) {
  for (const Node& node : nodes) {
    if (node.is_loop()) {
      around->push_back(&node);
      walk(node.body, around);
      around->pop_back();
      continue;
    }
    const std::vector<Id>& reduced = kernel_.stages[node.stage].reduce_axes;
    size_t result = around->size();
    for (size_t i = around->size(); i-- > 0;) {
      if (std::find(reduced.begin(), reduced.end(), (*around)[i]->axis) != reduced.end()) result = i;
    }
    places_[node.stage].push_back({count_++, *around, result});
  }
}

std::vector<const Place*> Places::of(Id stage) const {
  std::vector<const Place*> found;
  for (const Place& place : places_[stage]) found.push_back(&place);
  return found;
}

size_t Places::shared(Id a, Id b) const {
  const std::vector<const Node*>& first = places_[a].front().loops;
  const std::vector<const Node*>& second = places_[b].front().loops;
  size_t count = 0;
  while (count < first.size() && count < second.size() && first[count] == second[count]) ++count;
  return count;
}

}  // namespace tenon::compiler
