#include "core/codegen/loop/places.h"

#include <algorithm>

namespace tenon::codegen {
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
  for (size_t id = 0; id < kernel.stages.size(); ++id) find_level(static_cast<Id>(id));
}

void Places::walk(const std::vector<Node>& nodes, std::vector<const Node*>* around) {
  for (const Node& node : nodes) {
    if (node.is_loop()) {
      around->push_back(&node);
      walk(node.body, around);
      around->pop_back();
      continue;
    }
    if (node.is_barrier) continue;
    const std::vector<Id>& reduced = kernel_.stages[node.stage].reduce_axes;
    size_t result = around->size();
    for (size_t i = around->size(); i-- > 0;) {
      if (contains(reduced, (*around)[i]->axis)) result = i;
    }
    places_[node.stage].push_back({node.stage, count_++, *around, result, result});
  }
}

std::vector<const Place*> Places::of(Id stage) const {
  std::vector<const Place*> found;
  for (const Place& place : places_[stage]) found.push_back(&place);
  return found;
}

// Sets the level of the stages that `stage` reads: their readers share at most the loops that contain all of them.
void Places::find_level(Id stage) {
  if (kernel_.stages[stage].storage == Storage::inlined) return;
  for (const Id read : reads_[stage]) {
    for (Place& place : places_[read]) {
      for (const Place& other : places_[stage]) {
        size_t shared = 0;
        while (shared < place.level && shared < other.loops.size() && place.loops[shared] == other.loops[shared]) {
          ++shared;
        }
        place.level = std::min(place.level, shared);
      }
    }
  }
}

bool Places::adds_in_one_number(Id stage) const {
  const Place& place = places_[stage].front();
  const std::vector<Id>& reduced = kernel_.stages[stage].reduce_axes;
  return std::all_of(place.loops.begin() + static_cast<ptrdiff_t>(place.result), place.loops.end(),
                     [&](const Node* loop) { return contains(reduced, loop->axis); });
}

std::vector<Id> Places::starting(const Node& loop, size_t depth) const {
  std::vector<Id> result;
  for (const Node& node : loop.body) {
    if (node.is_loop()) {
      const std::vector<Id> inside = starting(node, depth);
      result.insert(result.end(), inside.begin(), inside.end());
      continue;
    }
    if (node.is_barrier) continue;
    const Stage& stage = kernel_.stages[node.stage];
    if (stage.kind != StageKind::reduce) continue;
    const Place& place = places_[node.stage].front();
    if ((adds_in_one_number(node.stage) ? place.result : place.level) == depth) result.push_back(node.stage);
  }
  return result;
}

bool Places::adds_across(Id stage) const {
  const Place& place = places_[stage].front();
  return std::any_of(place.loops.begin() + static_cast<ptrdiff_t>(place.result), place.loops.end(),
                     [](const Node* loop) { return loop->kind == LoopKind::work_items; });
}

bool Places::ends_together(const Node& loop, size_t depth) const {
  const std::vector<Id> ends = starting(loop, depth);
  return std::any_of(ends.begin(), ends.end(), [&](Id stage) { return adds_across(stage); });
}

bool Places::runs_together(const Node& loop, size_t depth) const {
  return std::any_of(loop.body.begin(), loop.body.end(), [&](const Node& node) {
    return node.is_barrier || (node.is_loop() && (ends_together(node, depth + 1) || runs_together(node, depth + 1)));
  });
}

}  // namespace tenon::codegen
