#include "core/codegen/fuse/fuse.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "core/codegen/axes/axes.h"
#include "core/codegen/fuse/circles.h"
#include "core/codegen/fuse/legality.h"
#include "core/graph/passes/match.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

using graph::Graph;
using graph::kNoNode;
using graph::Node;
using graph::NodeId;
using graph::Use;
using graph::ValueId;

constexpr uint32_t kNone = UINT32_MAX;
constexpr size_t kNearest = 4;  // how many readers of one value are considered together

class Fusing {
 public:
  Fusing(Graph& graph, const FuseOptions& options)
      : graph_(graph), options_(options), axes_(graph), circles_(graph), outputs_(graph.value_count(), false) {
    for (const ValueId id : graph.outputs()) outputs_[id] = true;
    home_.resize(graph.last() == kNoNode ? 0 : graph.last() + 1, kNone);
    places_.resize(home_.size(), 0);
    uint32_t place = 0;
    for (NodeId id = graph.first(); id != kNoNode; id = graph.next(id)) {
      home_.resize(std::max<size_t>(home_.size(), id + 1), kNone);
      places_.resize(home_.size(), 0);
      places_[id] = place++;
      order_.push_back(id);
      if (axes_.access(id).role == Role::opaque) continue;
      home_[id] = static_cast<uint32_t>(groups_.size());
      groups_.push_back({id});
      seeds_.push_back(id);
    }
    borrowed_.resize(groups_.size());
    borrowers_.resize(home_.size());
  }

  Fusion run() {
    sink();
    hold_back();
    grow();
    recompute();
    if (!held_.empty()) {
      held_.clear();
      grow();
      recompute();
    }
    return finish();
  }

 private:
  void grow() {
    while (merge_along_edges() || merge_siblings()) {
    }
  }

  ValueId result(NodeId id) const { return graph_.node(id).results[0]; }
  bool is_output(ValueId id) const { return outputs_[id]; }
  NodeId maker(ValueId id) const { return id == 0 ? kNoNode : graph_[id].producer; }
  bool fusible(NodeId id) const { return id != kNoNode && home_[id] != kNone; }
  std::string text(NodeId id) const { return fmt::format("%{} = {}", result(id), graph_.node(id).op->name); }
  std::string text(const std::vector<NodeId>& nodes) const {
    std::string all;
    for (const NodeId id : nodes) all += (all.empty() ? "{" : ", ") + text(id);
    return all + "}";
  }

  // Merges maps with one reader into that reader, so that a map before a reduction joins the reduction first.
  void sink() {
    for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
      if (!fusible(*at) || axes_.access(*at).role != Role::map) continue;
      const std::vector<Use>& uses = graph_[result(*at)].uses;
      if (is_output(result(*at)) || uses.size() != 1 || !fusible(uses[0].node)) continue;
      merge(home_[*at], home_[uses[0].node]);
    }
  }

  // Holds back cheap maps of values from outside that several groups read, until the groups have grown: in one group
  // they would be a path from it to the others.
  void hold_back() {
    for (uint32_t group = 0; group < groups_.size(); ++group) {
      if (!groups_[group].empty() && is_shared_and_cheap(group)) held_.insert(group);
    }
  }
  bool is_shared_and_cheap(uint32_t group) const {
    const NodeId last = groups_[group].back();
    const std::vector<Use>& uses = graph_[result(last)].uses;
    std::set<uint32_t> readers;
    for (const Use& use : uses) {
      if (!fusible(use.node)) return false;
      readers.insert(home_[use.node]);
    }
    if (readers.size() < 2 || is_output(result(last)) || axes_.access(last).view) return false;
    for (const NodeId id : groups_[group]) {
      for (const ValueId input : graph_.node(id).inputs) {
        if (fusible(maker(input)) && home_[maker(input)] != group) return false;
      }
    }
    std::vector<NodeId> part;
    return cost_with(last, group, &part) <= kMostRecomputed && part.size() == groups_[group].size();
  }

  bool merge_along_edges() {
    bool merged = false;
    for (const NodeId reader : order_) {
      if (!fusible(reader)) continue;
      for (size_t i = 0; i < graph_.node(reader).inputs.size(); ++i) {
        const NodeId from = maker(graph_.node(reader).inputs[i]);
        if (fusible(from)) merged = merge(home_[from], home_[reader]) || merged;
      }
    }
    return merged;
  }

  // Merges groups that read the same value.
  bool merge_siblings() {
    bool merged = false;
    for (ValueId id = 1; id < graph_.value_count(); ++id) {
      std::vector<NodeId> readers;
      for (const Use& use : graph_[id].uses) {
        if (fusible(use.node)) readers.push_back(use.node);
      }
      std::sort(readers.begin(), readers.end(), [&](NodeId a, NodeId b) { return places_[a] < places_[b]; });
      for (size_t i = 1; i < readers.size(); ++i) {
        for (size_t k = i < kNearest ? 0 : i - kNearest; k < i; ++k) {
          merged = merge(home_[readers[k]], home_[readers[i]], true) || merged;
        }
      }
    }
    return merged;
  }

  // Aligns the axes of the results of `nodes`, if `nodes` can then be one kernel.
  bool align(const std::vector<NodeId>& nodes, const Wanted& wanted, Verdict* verdict) {
    std::vector<ValueId> made;
    for (const NodeId id : nodes) {
      if (wanted(id)) made.push_back(result(id));
    }
    const size_t before = axes_.united();
    if (axes_.align(made)) {
      Verdict found = judge(graph_, axes_, nodes, wanted, options_);
      if (found.why_not.empty()) {
        *verdict = std::move(found);
        return true;
      }
    }
    axes_.take_back(before);
    return false;
  }

  bool merge(uint32_t a, uint32_t b, bool may_align = false) {
    if (a == b || held_.count(a) != 0 || held_.count(b) != 0) return false;
    if (!tried_
             .insert({versions_[std::min(a, b)], versions_[std::max(a, b)], std::min(a, b), std::max(a, b), may_align})
             .second) {
      return false;
    }
    std::vector<NodeId> nodes;
    std::set_union(groups_[a].begin(), groups_[a].end(), groups_[b].begin(), groups_[b].end(),
                   std::back_inserter(nodes), [&](NodeId x, NodeId y) { return places_[x] < places_[y]; });
    Verdict verdict = judge(graph_, axes_, nodes, read_outside(a, b), options_);
    const size_t before = axes_.united();
    if (verdict.axes_differ && may_align) align(nodes, read_outside(a, b), &verdict);
    std::string why = std::move(verdict.why_not);
    if (why.empty() && !circles_.join(seeds_[a], seeds_[b])) {
      why = "a path through a node outside would form a cycle";
      axes_.take_back(before);
    }
    if (options_.logs) {
      log_ += fmt::format("{} {} and {}{}{}\n", why.empty() ? "fuse" : "keep apart", text(groups_[a]), text(groups_[b]),
                          why.empty() ? "" : ": ", why);
    }
    if (!why.empty()) return false;
    for (const NodeId id : groups_[b]) {
      if (home_[id] == b) home_[id] = a;
    }
    for (const NodeId id : std::exchange(borrowed_[b], {})) borrow(a, id);
    groups_[a] = std::move(nodes);
    groups_[b].clear();
    ++versions_[a];
    return true;
  }

  Wanted read_outside(uint32_t a, uint32_t b) const {
    return [this, a, b](NodeId id) {
      const std::vector<Use>& uses = graph_[result(id)].uses;
      const auto outside = [&](const Use& use) { return home_[use.node] != a && home_[use.node] != b; };
      return is_output(result(id)) || std::any_of(uses.begin(), uses.end(), outside);
    };
  }

  void borrow(uint32_t group, NodeId id) {
    if (borrowed_[group].insert(id).second) borrowers_[id].push_back(group);
  }
  bool holds(uint32_t group, NodeId id) const {
    return home_[id] == group || (group != kNone && borrowed_[group].count(id) != 0);
  }

  // Lets each group that reads a value compute it again, if it costs less than a store and a load.
  void recompute() {
    for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
      if (fusible(*at) && axes_.access(*at).role == Role::map && !is_output(result(*at))) lend(*at);
    }
  }

  void lend(NodeId id) {
    std::set<uint32_t> readers;
    bool all = true;
    for (const Use& use : graph_[result(id)].uses) {
      const uint32_t group = home_[use.node];
      if (group == kNone || graph_.node(use.node).regions.size() != 0) all = false;
      if (group != kNone && group != home_[id]) readers.insert(group);
    }
    // A view costs nothing, so every reader that can takes a copy. Other values are only copied if their store can then
    // be left out.
    const bool view = axes_.access(id).view;
    if (readers.empty() || (!all && !view)) return;
    std::vector<NodeId> part;
    if (cost_with(id, home_[id], &part) > kMostRecomputed) return;
    std::map<uint32_t, std::vector<NodeId>> grown;
    for (const uint32_t group : readers) {
      std::optional<std::vector<NodeId>> nodes = with(group, part, id, readers.size());
      if (nodes) grown.emplace(group, std::move(*nodes));
      if (!nodes && !view) return;
    }
    for (auto& [group, nodes] : grown) {
      if (options_.logs) log_ += fmt::format("compute {} again in {}\n", text(part), text(groups_[group]));
      for (const NodeId node : part) borrow(group, node);
      groups_[group] = std::move(nodes);
    }
  }

  // The cost of `id` together with the maps of its group that it needs, which are added to `part`; more than
  // kMostRecomputed if it needs a reduction.
  int32_t cost_with(NodeId id, uint32_t group, std::vector<NodeId>* part) const {
    if (axes_.access(id).role != Role::map) return kMostRecomputed + 1;
    if (std::find(part->begin(), part->end(), id) != part->end()) return 0;
    int32_t cost = axes_.access(id).cost;
    for (const ValueId input : graph_.node(id).inputs) {
      if (cost > kMostRecomputed) return cost;
      if (maker(input) != kNoNode && holds(group, maker(input))) cost += cost_with(maker(input), group, part);
    }
    part->push_back(id);
    return cost;
  }

  // The nodes of `group` together with `part`, which computes `id`, if they may be one kernel that reads no more than
  // it saves.
  std::optional<std::vector<NodeId>> with(uint32_t group, const std::vector<NodeId>& part, NodeId id,
                                          size_t readers) const {
    std::vector<NodeId> nodes = groups_[group];
    for (const NodeId node : part) {
      if (!holds(group, node)) nodes.push_back(node);
    }
    std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return places_[a] < places_[b]; });
    const Wanted wanted = [&](NodeId node) { return home_[node] == group && wanted_outside(node); };
    const Verdict before = judge(graph_, axes_, groups_[group], wanted, options_);
    const Verdict after = judge(graph_, axes_, nodes, wanted, options_);
    if (!after.why_not.empty()) return std::nullopt;
    double more = 0;
    for (const ValueId input : after.inputs) {
      const bool known = std::find(before.inputs.begin(), before.inputs.end(), input) != before.inputs.end();
      if (!known) more += elements_at_hints(graph_, input);
    }
    const auto times = static_cast<double>(readers);
    const double saved = elements_at_hints(graph_, result(id)) * (times + 1);
    if (!axes_.access(id).view && more * times > saved) return std::nullopt;
    return nodes;
  }

  // True if a node outside of the home of `id` reads it from there.
  bool wanted_outside(NodeId id) const {
    if (is_output(result(id))) return true;
    const auto reads = [&](const Use& use) {
      if (home_[use.node] == kNone) return true;
      if (home_[use.node] != home_[id] && !holds(home_[use.node], id)) return true;
      const std::vector<uint32_t>& borrowers = borrowers_[use.node];
      return std::any_of(borrowers.begin(), borrowers.end(),
                         [&](uint32_t group) { return borrowed_[group].count(use.node) != 0 && !holds(group, id); });
    };
    const std::vector<Use>& uses = graph_[result(id)].uses;
    return std::any_of(uses.begin(), uses.end(), reads);
  }

  size_t computing(const std::vector<NodeId>& nodes) const {
    return static_cast<size_t>(
        std::count_if(nodes.begin(), nodes.end(), [&](NodeId id) { return !axes_.access(id).view; }));
  }

  // Removes views at the end of a group that no node of the group reads; they are free outside of it. Results are kept.
  void drop_last_views(uint32_t group) {
    std::vector<NodeId>& nodes = groups_[group];
    for (size_t i = nodes.size(); i-- > 0;) {
      const NodeId id = nodes[i];
      if (home_[id] != group || !axes_.access(id).view || is_output(result(id))) continue;
      const std::vector<Use>& uses = graph_[result(id)].uses;
      const bool read = std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
        return std::find(nodes.begin(), nodes.end(), use.node) != nodes.end();
      });
      if (read) continue;
      nodes.erase(nodes.begin() + static_cast<ptrdiff_t>(i));
      home_[id] = kNone;
    }
  }

  Fusion finish() {
    for (uint32_t group = 0; group < groups_.size(); ++group) drop_last_views(group);
    const size_t least = options_.only_several ? 2 : 1;
    for (uint32_t group = 0; group < groups_.size(); ++group) {
      if (computing(groups_[group]) >= least) continue;
      for (const NodeId id : groups_[group]) {
        if (home_[id] == group) home_[id] = kNone;
      }
      groups_[group].clear();
      borrowed_[group].clear();
    }
    Fusion made;
    std::map<uint32_t, FusionGroup> by_last;
    for (uint32_t group = 0; group < groups_.size(); ++group) {
      if (groups_[group].empty()) continue;
      keep_needed(group);
      if (groups_[group].empty()) continue;
      const Wanted wanted = [&](NodeId id) { return home_[id] == group && wanted_outside(id); };
      Verdict verdict = judge(graph_, axes_, groups_[group], wanted, options_);
      if (!verdict.why_not.empty()) continue;
      by_last.emplace(places_[groups_[group].back()], FusionGroup{groups_[group], std::move(verdict.inputs),
                                                                  std::move(verdict.outputs), verdict.reduces});
    }
    for (auto& [place, group] : by_last) {
      if (options_.logs) log_ += fmt::format("kernel {}\n", text(group.nodes));
      made.groups.push_back(std::move(group));
    }
    made.log = std::move(log_);
    return made;
  }

  // Removes nodes whose results are read neither inside nor outside of the group.
  void keep_needed(uint32_t group) {
    std::vector<NodeId>& nodes = groups_[group];
    std::set<NodeId> needed;
    for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) {
      const std::vector<Use>& uses = graph_[result(*at)].uses;
      const bool read =
          std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return needed.count(use.node) != 0; });
      if (read || (home_[*at] == group && wanted_outside(*at))) needed.insert(*at);
    }
    for (const NodeId id : nodes) {
      if (needed.count(id) == 0 && home_[id] == group) home_[id] = kNone;
    }
    nodes.erase(std::remove_if(nodes.begin(), nodes.end(), [&](NodeId id) { return needed.count(id) == 0; }),
                nodes.end());
  }

  Graph& graph_;
  const FuseOptions& options_;
  Axes axes_;
  Circles circles_;
  std::vector<bool> outputs_;  // indexed by value
  std::vector<NodeId> order_;
  std::vector<uint32_t> places_;             // by node: its position in the program
  std::vector<uint32_t> home_;               // by node: its group, or kNone
  std::vector<std::vector<NodeId>> groups_;  // in program order
  std::vector<NodeId> seeds_;                // by group: the node that it began with
  std::vector<std::set<NodeId>> borrowed_;   // by group: its nodes whose home is another group
  // by node: the groups that have borrowed it, possibly including groups that no longer exist
  std::vector<std::vector<uint32_t>> borrowers_;
  std::map<uint32_t, uint32_t> versions_;  // by group: how often it has grown
  // pairs of groups that were tried, with their versions, and if axes could be aligned
  std::set<std::array<uint32_t, 5>> tried_;
  std::set<uint32_t> held_;  // groups that are held back
  std::string log_;
};

}  // namespace

Fusion find_groups(Graph& graph, const FuseOptions& options) { return Fusing(graph, options).run(); }

size_t kernel_count(const Graph& graph, const Fusion& fusion) {
  std::set<NodeId> inside;
  std::set<ValueId> needed(graph.outputs().begin(), graph.outputs().end());
  std::set<ValueId> given;
  for (const FusionGroup& group : fusion.groups) {
    inside.insert(group.nodes.begin(), group.nodes.end());
    needed.insert(group.inputs.begin(), group.inputs.end());
    given.insert(group.outputs.begin(), group.outputs.end());
  }
  size_t count = fusion.groups.size();
  for (NodeId id = graph.last(); id != kNoNode; id = graph.previous(id)) {
    const Node& node = graph.node(id);
    const bool wanted = std::any_of(node.results.begin(), node.results.end(),
                                    [&](ValueId made) { return needed.count(made) != 0 && given.count(made) == 0; });
    if (!wanted) continue;
    needed.insert(node.inputs.begin(), node.inputs.end());
    if (node.op->form != OpForm::view) ++count;
  }
  return count;
}

}  // namespace tenon::codegen
