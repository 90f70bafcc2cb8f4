// Replaces groups by nodes with a region.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/codegen/axes/axes.h"
#include "core/codegen/emit/choose.h"
#include "core/codegen/fuse/fuse.h"
#include "core/codegen/fuse/legality.h"
#include "core/codegen/fuse/split.h"
#include "core/graph/fusion.h"
#include "core/graph/passes/match.h"
#include "core/graph/passes/passes.h"
#include "core/graph/regions/regions.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

using codegen::Fusion;
using codegen::FusionGroup;

class Rewriting {
 public:
  Rewriting(Graph* graph, const Fusion& fusion) : graph_(*graph), fusion_(fusion) {
    for (const FusionGroup& group : fusion.groups) {
      for (const NodeId id : group.nodes) nodes_.emplace(id, graph_.node(id));
    }
    for (NodeId id = graph_.first(); id != kNoNode; id = graph_.next(id)) {
      places_[id] = {order_.size(), id};
      order_.push_back(id);
    }
  }

  // True if it changed the graph.
  bool run() {
    size_t made = 0;
    for (const FusionGroup& group : fusion_.groups) made += rewrite(group) ? 1 : 0;
    if (made == 0) return false;
    remove_dead_code(&graph_);
    sort();
    remove_dead_code(&graph_);
    return true;
  }

 private:
  // Moves nodes that precede their inputs to the end, together with their readers, each after its inputs.
  void sort() {
    std::unordered_set<NodeId> seen;
    std::vector<NodeId> late;
    std::unordered_map<NodeId, size_t> numbers;  // the moved nodes, numbered
    const auto ready = [&](NodeId id) {
      const std::vector<ValueId>& inputs = graph_.node(id).inputs;
      return std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) {
        return input == 0 || graph_[input].producer == kNoNode || seen.count(graph_[input].producer) != 0;
      });
    };
    for (NodeId id = graph_.first(); id != kNoNode; id = graph_.next(id)) {
      if (ready(id)) {
        seen.insert(id);
      } else {
        numbers.emplace(id, late.size());
        late.push_back(id);
      }
    }
    put_last(late, numbers);
  }

  // Moves the late nodes to the end in topological order; among ready nodes the first one is taken.
  void put_last(const std::vector<NodeId>& late, const std::unordered_map<NodeId, size_t>& numbers) {
    std::vector<size_t> waits(late.size(), 0);
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t i = 0; i < late.size(); ++i) {
      for (const ValueId input : graph_.node(late[i]).inputs) {
        if (input != 0 && numbers.count(graph_[input].producer) != 0) ++waits[i];
      }
      if (waits[i] == 0) ready.push(i);
    }
    size_t moved = 0;
    for (; !ready.empty(); ++moved) {
      const NodeId id = late[ready.top()];
      ready.pop();
      graph_.move(id, kNoNode);
      for (const ValueId made : graph_.node(id).results) {
        for (const Use& use : graph_[made].uses) {
          const auto number = numbers.find(use.node);
          if (number != numbers.end() && --waits[number->second] == 0) ready.push(number->second);
        }
      }
    }
    if (moved != late.size()) throw Error(Subject{"fuse"}, Code::internal, "the groups of the program form a cycle.");
  }

  // The value that replaced `id`, a value of the original graph.
  ValueId now(ValueId id) const {
    for (auto found = replaced_.find(id); found != replaced_.end(); found = replaced_.find(id)) id = found->second;
    return id;
  }

  // A region by itself may have more axes than in its graph, where other values show that some are equal.
  static bool stands_alone(Graph& region) {
    codegen::Axes axes(region);
    axes.align(std::vector<ValueId>(region.outputs().begin(), region.outputs().end()));
    std::vector<NodeId> nodes;
    for (NodeId id = region.first(); id != kNoNode; id = region.next(id)) nodes.push_back(id);
    const codegen::Wanted wanted = [&](NodeId id) { return region.is_output(region.node(id).results[0]); };
    return codegen::judge(region, axes, nodes, wanted, {}).why_not.empty();
  }

  bool rewrite(const FusionGroup& group) {
    Node fused;
    fused.op = &control::row_of(control::Kind::fused).op;
    fused.attributes = words_of(control::Attributes{});
    fused.label = graph_.add_label(label(group));
    fused.regions.push_back(region(group, &fused.inputs));
    if (!stands_alone(*fused.regions[0])) return false;
    const Place place = place_of(group);
    const NodeId made =
        graph_.insert(place.last == kNoNode ? graph_.first() : graph_.next(place.last), std::move(fused));
    if (place.last != kNoNode) {
      places_[made] = {place.number, made};
      places_[order_[place.number]].last = made;
    }
    for (size_t i = 0; i < group.outputs.size(); ++i) {
      const ValueId old = now(group.outputs[i]);
      graph_.replace(old, graph_.node(made).results[i]);
      replaced_[old] = graph_.node(made).results[i];
    }
    return true;
  }

  // A node of the original program, by its number, and the last of the fused nodes that were inserted after it.
  struct Place {
    size_t number = 0;
    NodeId last = kNoNode;
  };

  // The last position of the group's nodes and of the producers of its inputs.
  Place place_of(const FusionGroup& group) const {
    Place found;
    const auto note = [&](NodeId id) {
      const auto place = places_.find(id);
      if (place == places_.end() || (found.last != kNoNode && place->second.number <= found.number)) return;
      found = places_.at(order_[place->second.number]);
    };
    for (const NodeId id : group.nodes) note(id);
    for (const ValueId id : group.inputs) note(graph_[now(id)].producer);
    return found;
  }

  std::shared_ptr<Graph> region(const FusionGroup& group, std::vector<ValueId>* operands) {
    std::shared_ptr<Graph> made = graph_.new_region();
    std::map<ValueId, ValueId> of{{0, 0}};  // by value of the original graph: the value of the region
    for (const NodeId id : group.nodes) {
      Node copy = nodes_.at(id);
      for (ValueId& input : copy.inputs) {
        if (of.count(input) == 0) of[input] = given(made.get(), input, operands);
        input = of[input];
      }
      if (copy.label != 0) copy.label = made->add_label(graph_.labels()[copy.label]);
      const std::vector<ValueId> results = std::exchange(copy.results, {});
      const NodeId put = made->append(std::move(copy), results.size());
      for (size_t i = 0; i < results.size(); ++i) of[results[i]] = made->node(put).results[i];
    }
    std::vector<ValueId> outputs;
    for (const ValueId id : group.outputs) outputs.push_back(of.at(id));
    made->set_outputs(std::move(outputs));
    return made;
  }

  // A constant of one element is copied into the region; other values become operands.
  ValueId given(Graph* region, ValueId id, std::vector<ValueId>* operands) {
    const Value value = graph_[now(id)];
    if (value.constant.defined() && value.constant.elements() == 1) return region->add_constant(value.constant);
    operands->push_back(now(id));
    return region->add_input(value.dtype, value.dims, value.device);
  }

  std::string label(const FusionGroup& group) const {
    std::string text = fmt::format("{} nodes fused", group.nodes.size());
    for (const NodeId id : {group.nodes.front(), group.nodes.back()}) {
      const uint32_t own = nodes_.at(id).label;
      if (own != 0) text += fmt::format("{} {}", id == group.nodes.front() ? "," : " to", graph_.labels()[own]);
    }
    return text;
  }

  Graph& graph_;
  const Fusion& fusion_;
  std::map<NodeId, Node> nodes_;         // nodes of groups, before they were replaced
  std::map<ValueId, ValueId> replaced_;  // by value of the original graph
  std::vector<NodeId> order_;            // the order of nodes in the original program
  std::unordered_map<NodeId, Place> places_;
};

// The number of buffers that a kernel may have on every device of the graph, at most `most`.
size_t most_buffers(const Graph& graph, size_t most) {
  std::set<DeviceState*> devices;
  for (NodeId id = graph.first(); id != kNoNode; id = graph.next(id)) {
    for (const ValueId result : graph.node(id).results) devices.insert(graph[result].device);
  }
  for (DeviceState* device : devices) {
    std::string why_not;
    if (device == nullptr || !takes_modules(device)) continue;
    const std::optional<Dialect> dialect = codegen::dialect_for(device, &why_not);
    if (dialect) most = std::min<size_t>(most, dialect->info.greatest_buffers);
  }
  return most;
}

}  // namespace

std::string fuse_nodes(Graph* graph, FusedGroups groups, bool logs) {
  std::string log;
  codegen::FuseOptions options;
  options.only_several = groups == FusedGroups::several;
  options.logs = logs;
  options.most_buffers = most_buffers(*graph, options.most_buffers);
  codegen::split_reductions(graph);
  for (;;) {  // the remaining nodes of a group may form another group
    const Fusion fusion = codegen::find_groups(*graph, options);
    log += fusion.log;
    if (fusion.groups.empty() || !Rewriting(graph, fusion).run()) return log;
  }
}

}  // namespace tenon::graph
