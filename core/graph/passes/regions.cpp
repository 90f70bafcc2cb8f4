// Simplifies regions: moves constants into them, removes unread inputs, and replaces a node by its branch if the
// predicate is known.
#include <algorithm>
#include <map>
#include <utility>

#include "core/graph/passes/passes.h"
#include "core/graph/regions/regions.h"

namespace tenon::graph {
namespace {

class Regions {
 public:
  Regions(Graph* graph, const PassOptions& options) : graph_(*graph), options_(options) {}

  // Inputs of a region may be passed on to inner regions; inputs that those do not read are then removed here.
  void run() {
    pass();
    for_each_region(graph_, [&](Graph& region) { Regions(&region, options_).run(); });
    pass();
  }

 private:
  void pass() {
    remove_dead_code(&graph_);
    for (NodeId id = graph_.first(); id != kNoNode;) {
      const NodeId after = graph_.next(id);
      if (has_regions(graph_.node(id)) && !take_branch(id)) simplify(id);
      id = after;
    }
  }

  const Node& node(NodeId id) const { return graph_.node(id); }

  bool take_branch(NodeId id) {
    const Node& cond = node(id);
    if (&control::row_of(*cond.op) != &control::row_of(control::Kind::cond)) return false;
    const Tensor& predicate = graph_[cond.inputs[0]].constant;
    if (!predicate.defined()) return false;
    const std::shared_ptr<Graph> branch = cond.regions[predicate.item().to_int() != 0 ? 0 : 1];
    std::map<ValueId, ValueId> of{{0, 0}};  // by value of the branch: its value in the graph
    for (size_t i = 0; i < branch->inputs().size(); ++i) of[branch->inputs()[i]] = cond.inputs[i + 1];
    for (ValueId value = 1; value < branch->value_count(); ++value) {
      if ((*branch)[value].constant.defined()) of[value] = graph_.add_constant((*branch)[value].constant);
    }
    for (NodeId from = branch->first(); from != kNoNode; from = branch->next(from)) bring(id, *branch, from, &of);
    const std::vector<ValueId> results = node(id).results;
    for (size_t i = 0; i < results.size(); ++i) graph_.replace(results[i], of[branch->outputs()[i]]);
    graph_.erase(id);
    return true;
  }

  // Inserts a copy of the node `from` of `branch` before the node `id`.
  void bring(NodeId id, const Graph& branch, NodeId from, std::map<ValueId, ValueId>* of) {
    Node copy = branch.node(from);
    const std::vector<ValueId> results = std::exchange(copy.results, {});
    for (ValueId& input : copy.inputs) input = of->at(input);
    if (copy.label != 0) copy.label = graph_.add_label(branch.labels()[copy.label]);
    const NodeId made = graph_.insert(id, std::move(copy), results.size());
    for (size_t i = 0; i < results.size(); ++i) (*of)[results[i]] = node(made).results[i];
  }

  void simplify(NodeId id) {
    const std::vector<bool> kept = kept_results(node(id));
    if (std::count(kept.begin(), kept.end(), true) == 0) return;  // dead code
    std::vector<ValueId> inputs(node(id).inputs.begin(), node(id).inputs.end());
    const bool fewer_results = std::count(kept.begin(), kept.end(), false) != 0;
    if (fewer_results) drop_results(node(id), kept);
    const std::vector<bool> gone = sink(node(id));
    drop_inputs(node(id), gone, &inputs);
    if (!fewer_results) return graph_.set_inputs(id, std::move(inputs));
    Node made = node(id);
    made.inputs = std::move(inputs);
    const std::vector<ValueId> results = std::exchange(made.results, {});
    const NodeId with = graph_.insert(id, std::move(made));
    for (size_t i = 0, next = 0; i < results.size(); ++i) {
      if (kept[i]) graph_.replace(results[i], node(with).results[next++]);
    }
    graph_.erase(id);
  }

  // The next step needs the carried results.
  std::vector<bool> kept_results(const Node& node) const {
    std::vector<bool> kept;
    for (size_t i = 0; i < node.results.size(); ++i) {
      const bool used = !graph_[node.results[i]].uses.empty() || graph_.is_output(node.results[i]);
      kept.push_back(used || i < carried_count(node));
    }
    return kept;
  }

  static void drop_results(const Node& node, const std::vector<bool>& kept) {
    for (const std::shared_ptr<Graph>& region : node.regions) {
      std::vector<ValueId> outputs;
      for (size_t i = 0; i < kept.size(); ++i) {
        if (kept[i]) outputs.push_back(region->outputs()[i]);
      }
      region->set_outputs(std::move(outputs));
      remove_dead_code(region.get());
    }
  }

  // Replaces inputs that are always the same constant by the constant, and equal inputs by one. Returns the operands
  // that the regions no longer read.
  std::vector<bool> sink(const Node& node) {
    std::vector<bool> gone(node.inputs.size(), false);
    std::map<ValueId, size_t> first;
    for (size_t i = first_invariant(node); i < node.inputs.size(); ++i) {
      const Tensor& constant = graph_[node.inputs[i]].constant;
      const auto [same, fresh] = first.emplace(node.inputs[i], i);
      gone[i] = true;
      for (const std::shared_ptr<Graph>& region : node.regions) {
        const ValueId input = region->inputs()[i - first_argument(node)];
        if (unread(*region, input)) continue;
        if (constant.defined()) {
          region->replace(input, region->add_constant(constant));
          fold_constants(region.get(), options_);
        } else if (!fresh) {
          region->replace(input, region->inputs()[same->second - first_argument(node)]);
          gone[same->second] = false;
        } else {
          gone[i] = false;
        }
      }
    }
    return gone;
  }

  static bool unread(const Graph& region, ValueId input) {
    return region[input].uses.empty() && !region.is_output(input);
  }

  static void drop_inputs(const Node& node, const std::vector<bool>& gone, std::vector<ValueId>* inputs) {
    for (const std::shared_ptr<Graph>& region : node.regions) {
      std::vector<ValueId> left;
      for (size_t i = first_argument(node); i < gone.size(); ++i) {
        if (!gone[i]) left.push_back(region->inputs()[i - first_argument(node)]);
      }
      region->keep_inputs(std::move(left));
    }
    size_t left = 0;
    for (size_t i = 0; i < gone.size(); ++i) {
      if (!gone[i]) (*inputs)[left++] = (*inputs)[i];
    }
    inputs->resize(left);
  }

  Graph& graph_;
  const PassOptions& options_;
};

}  // namespace

// Regions handles nested regions itself.
void simplify_regions(Graph* graph, const PassOptions& options) { Regions(graph, options).run(); }

}  // namespace tenon::graph
