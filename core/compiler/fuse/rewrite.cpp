// Groups become nodes with a region.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/compiler/axes/axes.h"
#include "core/compiler/emit/choose.h"
#include "core/compiler/fuse/fuse.h"
#include "core/compiler/fuse/legality.h"
#include "core/compiler/fuse/split.h"
#include "core/graph/fusion.h"
#include "core/graph/passes/match.h"
#include "core/graph/passes/passes.h"
#include "core/graph/regions/regions.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

using compiler::Fusion;
using compiler::FusionGroup;

class Rewriting {
 public:
  Rewriting(Graph* graph, const Fusion& fusion) : graph_(*graph), fusion_(fusion) {
    for (const FusionGroup& group : fusion.groups) {
      for (const NodeId id : group.nodes) nodes_.emplace(id, graph_.node(id));
    }
  }

  // Whether it changed the graph.
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
  // Nodes that stand before what they read go to the end, with those that read them, each behind what it reads.
  void sort() {
    std::set<NodeId> seen;
    std::vector<NodeId> late;
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
        late.push_back(id);
      }
    }
    while (!late.empty()) {
      const auto next = std::find_if(late.begin(), late.end(), ready);
      if (next == late.end()) throw Error(Code::internal, "fuse: the groups of the program form a circle.");
      Node copy = graph_.node(*next);
      const std::vector<ValueId> results = std::exchange(copy.results, {});
      const NodeId made = graph_.append(std::move(copy), results.size());
      for (size_t i = 0; i < results.size(); ++i) graph_.replace(results[i], graph_.node(made).results[i]);
      graph_.erase(*next);
      seen.insert(made);
      late.erase(next);
    }
  }

  // What stands for `id`, a value of the graph before.
  ValueId now(ValueId id) const {
    for (auto found = replaced_.find(id); found != replaced_.end(); found = replaced_.find(id)) id = found->second;
    return id;
  }

  // Alone a region may have other axes than in its graph, where further values say which are one.
  static bool stands_alone(Graph& region) {
    compiler::Axes axes(region);
    axes.align(std::vector<ValueId>(region.outputs().begin(), region.outputs().end()));
    std::vector<NodeId> nodes;
    for (NodeId id = region.first(); id != kNoNode; id = region.next(id)) nodes.push_back(id);
    const compiler::Wanted wanted = [&](NodeId id) { return region.is_output(region.node(id).results[0]); };
    return compiler::judge(region, axes, nodes, wanted, {}).why_not.empty();
  }

  bool rewrite(const FusionGroup& group) {
    Node fused;
    fused.op = &control::row_of(control::Kind::fused).op;
    fused.attributes = words_of(control::Attributes{});
    fused.label = graph_.add_label(label(group));
    fused.regions.push_back(region(group, &fused.inputs));
    if (!stands_alone(*fused.regions[0])) return false;
    const NodeId last = place(group);
    const NodeId made = graph_.insert(last == kNoNode ? graph_.first() : graph_.next(last), std::move(fused));
    for (size_t i = 0; i < group.outputs.size(); ++i) {
      const ValueId old = now(group.outputs[i]);
      graph_.replace(old, graph_.node(made).results[i]);
      replaced_[old] = graph_.node(made).results[i];
    }
    return true;
  }

  // The last node of the program that the group has, or that makes what it reads.
  NodeId place(const FusionGroup& group) {
    std::map<NodeId, size_t> order;
    for (NodeId id = graph_.first(); id != kNoNode; id = graph_.next(id)) order.emplace(id, order.size());
    NodeId last = kNoNode;
    const auto note = [&](NodeId id) {
      if (order.count(id) != 0 && (last == kNoNode || order[id] > order[last])) last = id;
    };
    for (const NodeId id : group.nodes) note(id);
    for (const ValueId id : group.inputs) note(graph_[now(id)].producer);
    return last;
  }

  std::shared_ptr<Graph> region(const FusionGroup& group, std::vector<ValueId>* operands) {
    std::shared_ptr<Graph> made = graph_.new_region();
    std::map<ValueId, ValueId> of{{0, 0}};  // by value of the graph before: the region's
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

  // A constant of one element is the region's own, other values are operands.
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
  std::map<NodeId, Node> nodes_;         // of groups, as they were
  std::map<ValueId, ValueId> replaced_;  // values of the graph before
};

// What a kernel may take on every device of the graph, up to `most`.
size_t most_buffers(const Graph& graph, size_t most) {
  std::set<DeviceState*> devices;
  for (NodeId id = graph.first(); id != kNoNode; id = graph.next(id)) {
    for (const ValueId result : graph.node(id).results) devices.insert(graph[result].device);
  }
  for (DeviceState* device : devices) {
    std::string why_not;
    if (device == nullptr || !takes_modules(device)) continue;
    const std::optional<Dialect> dialect = compiler::dialect_for(device, &why_not);
    if (dialect) most = std::min<size_t>(most, dialect->info.greatest_buffers);
  }
  return most;
}

}  // namespace

std::string fuse_nodes(Graph* graph, FusedGroups groups) {
  std::string log;
  compiler::FuseOptions options;
  options.only_several = groups == FusedGroups::several;
  options.most_buffers = most_buffers(*graph, options.most_buffers);
  compiler::split_reductions(graph);
  for (;;) {  // what a group has left behind may be a group
    const Fusion fusion = compiler::find_groups(*graph, options);
    log += fusion.log;
    if (fusion.groups.empty() || !Rewriting(graph, fusion).run()) return log;
  }
}

}  // namespace tenon::graph
