#include "core/codegen/fuse/legality.h"

#include <algorithm>
#include <map>
#include <set>

#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

class Judge {
 public:
  Judge(const Graph& graph, const Axes& axes, const std::vector<NodeId>& nodes, const Wanted& wanted,
        const FuseOptions& options)
      : graph_(graph), axes_(axes), nodes_(nodes), wanted_(wanted), options_(options) {}

  Verdict run() {
    if (nodes_.size() > options_.most_nodes) return no("it has too many nodes");
    find_borders();
    if (verdict_.outputs.empty()) return no("it has no outputs");
    if (verdict_.inputs.size() + verdict_.outputs.size() > options_.most_buffers) return no("it has too many buffers");
    if (!one_device() || !picks_from_rows()) return std::move(verdict_);
    verdict_.axes_differ = !(find_spatial() && outputs_fit() && edges_fit() && enough_items());
    return std::move(verdict_);
  }

 private:
  Verdict no(std::string why) {
    verdict_.why_not = std::move(why);
    return std::move(verdict_);
  }
  bool refuse(std::string why) {
    verdict_.why_not = std::move(why);
    return false;
  }
  bool inside(NodeId id) const { return std::binary_search(sorted_.begin(), sorted_.end(), id); }
  bool made_inside(ValueId id) const { return graph_[id].producer != graph::kNoNode && inside(graph_[id].producer); }
  ValueId result(NodeId id) const { return graph_.node(id).results[0]; }
  std::vector<AxisId> sorted_axes(ValueId id) const {
    std::vector<AxisId> axes = axes_.of(id);
    std::sort(axes.begin(), axes.end());
    return axes;
  }

  void find_borders() {
    sorted_ = nodes_;
    std::sort(sorted_.begin(), sorted_.end());
    std::set<ValueId> seen;
    for (const NodeId id : nodes_) {
      for (const ValueId input : graph_.node(id).inputs) {
        if (input != 0 && !made_inside(input) && seen.insert(input).second) verdict_.inputs.push_back(input);
      }
      if (wanted_(id)) verdict_.outputs.push_back(result(id));
    }
  }

  // Picking one element of a row costs a kernel a pass over the whole row, so only a kernel that reads the row anyway
  // may do it.
  bool picks_from_rows() {
    const bool has_rows = std::any_of(nodes_.begin(), nodes_.end(), [&](NodeId id) {
      return axes_.access(id).role != Role::map && !axes_.access(id).picks;
    });
    for (const NodeId id : nodes_) {
      if (!axes_.access(id).picks) continue;
      if (!has_rows || !made_inside(graph_.node(id).inputs[0]))
        return refuse("it would read a whole row to get one element");
    }
    return true;
  }

  bool one_device() {
    for (const NodeId id : nodes_) {
      if (axes_.access(id).role == Role::opaque) return refuse("one of its nodes is neither a map nor a reduction");
      if (empty(result(id)) || std::any_of(graph_.node(id).inputs.begin(), graph_.node(id).inputs.end(),
                                           [&](ValueId input) { return empty(input); })) {
        return refuse("one of its values has no elements");
      }
      if (graph_[result(id)].device != graph_[result(nodes_[0])].device) return refuse("its nodes are on two devices");
    }
    return true;
  }

  bool empty(ValueId id) const {
    const std::vector<AxisId> axes = axes_.of(id);
    return std::any_of(axes.begin(), axes.end(), [&](AxisId axis) { return identical(axes_.size(axis), SymDim(0)); });
  }

  // The axes that a reduction's result keeps; for rows, the axes of the result without the reduced ones.
  std::vector<AxisId> kept(NodeId id) const {
    if (axes_.access(id).role == Role::reduce) return sorted_axes(result(id));
    std::vector<AxisId> axes;
    const ValueId made = result(id);
    for (int32_t dim = 0; dim < graph_[made].dims.rank(); ++dim) {
      if ((axes_.access(id).reduced >> dim & 1) != 0) continue;
      const std::vector<AxisId> of = axes_.of(made, dim);
      axes.insert(axes.end(), of.begin(), of.end());
    }
    std::sort(axes.begin(), axes.end());
    return axes;
  }

  // The lengths over which the node reduces, except lengths of 1.
  std::vector<SymDim> lengths(NodeId id) const {
    std::vector<SymDim> sizes;
    const SymDims& dims = graph_[graph_.node(id).inputs[0]].dims;
    for (int32_t dim = 0; dim < dims.rank(); ++dim) {
      if ((axes_.access(id).reduced >> dim & 1) == 0) continue;
      for (const AxisId axis : axes_.of(graph_.node(id).inputs[0], dim)) sizes.push_back(axes_.size(axis));
    }
    std::sort(sizes.begin(), sizes.end(), [](SymDim a, SymDim b) { return a.word() < b.word(); });
    return sizes;
  }

  static bool same(const std::vector<SymDim>& a, const std::vector<SymDim>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](SymDim x, SymDim y) { return identical(x, y); });
  }

  bool find_spatial() {
    for (const NodeId id : nodes_) {
      if (axes_.access(id).role == Role::map) continue;
      const std::vector<AxisId> axes = kept(id);
      const std::vector<SymDim> reduced = lengths(id);
      if (!verdict_.reduces) {
        verdict_.spatial = axes;
        reduced_ = reduced;
        verdict_.reduces = true;
      } else if (axes != verdict_.spatial) {
        return refuse("its reductions keep different axes");
      } else if (!same(reduced, reduced_)) {
        return refuse("its reductions have different lengths");
      }
    }
    if (!verdict_.reduces) verdict_.spatial = sorted_axes(verdict_.outputs[0]);
    return true;
  }

  // An output may have some of the reduced lengths in addition to the spatial axes, each once.
  bool outputs_fit() {
    for (const ValueId output : verdict_.outputs) {
      const std::vector<AxisId> axes = sorted_axes(output);
      if (!std::includes(axes.begin(), axes.end(), verdict_.spatial.begin(), verdict_.spatial.end())) {
        return refuse(fmt::format("its output %{} lacks a spatial axis", output));
      }
      std::vector<SymDim> left = reduced_;
      for (const AxisId axis : axes) {
        if (std::binary_search(verdict_.spatial.begin(), verdict_.spatial.end(), axis)) continue;
        const auto found =
            std::find_if(left.begin(), left.end(), [&](SymDim size) { return identical(size, axes_.size(axis)); });
        if (found == left.end()) return refuse(fmt::format("its output %{} has an axis that is not reduced", output));
        left.erase(found);
      }
    }
    return true;
  }

  // Starts at the outputs: each input of a node must be read at the item's position, or be computed again there.
  bool edges_fit() {
    for (const NodeId id : nodes_) {
      const Node& node = graph_.node(id);
      for (uint32_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == 0 || !made_inside(node.inputs[i]) || aligned(id, i)) continue;
        const NodeId maker = graph_[node.inputs[i]].producer;
        const int32_t cost = cost_of_maps(maker);
        if (cost < 0) return refuse(fmt::format("%{} is read at other positions than it is computed", node.inputs[i]));
        const bool repeats =
            !axes_.access(id).puts && elements_at_hints(graph_, result(id)) > elements_at_hints(graph_, node.inputs[i]);
        if (repeats && cost > kMostRecomputed)
          return refuse(fmt::format("%{} would be computed several times", node.inputs[i]));
      }
    }
    return true;
  }

  bool aligned(NodeId id, uint32_t input) const {
    return std::all_of(verdict_.spatial.begin(), verdict_.spatial.end(),
                       [&](AxisId axis) { return axes_.aligned(id, input, axis); });
  }

  // The cost of one element of the result of `id` with everything inside that it is computed from; -1 if that includes
  // a reduction.
  int32_t cost_of_maps(NodeId id) {
    if (axes_.access(id).role != Role::map) return -1;
    if (const auto known = costs_.find(id); known != costs_.end()) return known->second;
    int32_t cost = axes_.access(id).cost;
    for (const ValueId input : graph_.node(id).inputs) {
      if (input == 0 || !made_inside(input) || cost < 0) continue;
      const int32_t before = cost_of_maps(graph_[input].producer);
      cost = before < 0 ? -1 : cost + before;
    }
    return costs_[id] = cost;
  }

  // A kernel of few items leaves most of a device idle; as separate kernels its parts have more items.
  bool enough_items() {
    if (!verdict_.reduces || nodes_.size() < 2) return true;
    double items = 1, length = 1;
    for (const AxisId axis : verdict_.spatial) items *= hint(axes_.size(axis));
    for (const SymDim size : reduced_) length *= hint(size);
    return items >= kFewItems || items * length < kManyElements || refuse("it has few items and many elements");
  }

  double hint(SymDim size) const { return static_cast<double>(graph_.arena().hint(size).value_or(kFewItems)); }

  const Graph& graph_;
  const Axes& axes_;
  const std::vector<NodeId>& nodes_;
  const Wanted& wanted_;
  const FuseOptions& options_;
  std::vector<NodeId> sorted_;
  std::vector<SymDim> reduced_;  // reduced lengths
  std::map<NodeId, int32_t> costs_;
  Verdict verdict_;
};

}  // namespace

double elements_at_hints(const Graph& graph, ValueId value) {
  double count = 1;
  for (const SymDim size : graph[value].dims) count *= static_cast<double>(graph.arena().hint(size).value_or(1));
  return count;
}

Verdict judge(const Graph& graph, const Axes& axes, const std::vector<NodeId>& nodes, const Wanted& wanted,
              const FuseOptions& options) {
  return Judge(graph, axes, nodes, wanted, options).run();
}

}  // namespace tenon::codegen
