#include "core/graph/verify.h"

#include <algorithm>

#include "core/graph/record.h"
#include "core/graph/regions/regions.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

template <class... Parts>
Status wrong(fmt::format_string<const Parts&...> text, const Parts&... parts) {
  return Status(Code::invalid_argument, fmt::format(text, parts...));
}

class Verifier {
 public:
  Verifier(Graph& graph, size_t depth) : graph_(graph), depth_(depth), made_(graph.value_count(), false) {}

  Status run() {
    for (ValueId id = 1; id < graph_.value_count(); ++id)
      made_[id] = graph_[id].producer == kNoNode && graph_[id].dtype != DType::none;
    size_t uses = 0, count = 0;
    for (NodeId id = graph_.first(); id != kNoNode; id = graph_.next(id)) {
      if (const Status status = visit(id); !status.ok()) return named(id, status);
      uses += graph_.node(id).inputs.size() -
              static_cast<size_t>(std::count(graph_.node(id).inputs.begin(), graph_.node(id).inputs.end(), 0u));
      ++count;
    }
    if (count != graph_.size()) return wrong("{} nodes are in order, but {} are counted.", count, graph_.size());
    for (ValueId id : graph_.outputs()) {
      if (id >= made_.size() || !made_[id]) return wrong("The output %{} is made by no node.", id);
    }
    size_t noted = 0;
    for (ValueId id = 1; id < graph_.value_count(); ++id) noted += graph_[id].uses.size();
    return noted == uses ? Status() : wrong("{} uses are noted, but nodes have {} inputs.", noted, uses);
  }

 private:
  Status named(NodeId id, const Status& status) const {
    const Node& node = graph_.node(id);
    return wrong("%{} = {}: {}.", node.results.empty() ? 0 : node.results[0], node.op == nullptr ? "?" : node.op->name,
                 status.message());
  }

  Status visit(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.op == nullptr) return wrong("it was erased, but is still in order");
    TENON_RETURN_IF_ERROR(control::is_control(*node.op) ? check_regions(node)
                                                        : check_record(graph_, node, node.results.size()));
    for (uint32_t i = 0; i < node.inputs.size(); ++i) TENON_RETURN_IF_ERROR(check_input(id, i));
    return check_results(id);
  }

  Status check_regions(const Node& node) {
    if (depth_ == kMostRegionDepth) return wrong("regions are nested more than {} deep", depth_);
    for (const std::shared_ptr<Graph>& region : node.regions) {
      if (region == nullptr || &region->arena() != &graph_.arena()) return wrong("a region has sizes of its own");
      if (const Status status = Verifier(*region, depth_ + 1).run(); !status.ok()) {
        return wrong("in a region: {}", status.message());
      }
    }
    return {};
  }

  Status check_input(NodeId id, uint32_t i) {
    const ValueId value = graph_.node(id).inputs[i];
    if (value == 0) return {};
    if (value >= made_.size() || !made_[value]) return wrong("it reads %{}, which is not made before it", value);
    const std::vector<Use>& uses = graph_[value].uses;
    if (std::count(uses.begin(), uses.end(), Use{id, i}) != 1)
      return wrong("the uses of %{} do not list this read", value);
    return {};
  }

  Status check_results(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<Value> types;
    try {
      types = infer_values(graph_, node, node.results.size());
    } catch (const Error& error) {
      return error.status();
    }
    if (types.size() != node.results.size())
      return wrong("it has {} results, but gives {}", node.results.size(), types.size());
    for (uint32_t i = 0; i < node.results.size(); ++i) {
      const Value& value = graph_[node.results[i]];
      if (value.producer != id || value.result != i || made_[node.results[i]])
        return wrong("result {} belongs to another node", i);
      if (value.dtype != types[i].dtype || !same(value.dims, types[i].dims)) {
        return wrong("result {} is {} {}, but the op's rule says {} {}", i, dtype_name(value.dtype),
                     to_string(value.dims), dtype_name(types[i].dtype), to_string(types[i].dims));
      }
      made_[node.results[i]] = true;
    }
    return {};
  }

  bool same(const SymDims& a, const SymDims& b) {
    if (a.rank() != b.rank()) return false;
    for (int32_t axis = 0; axis < a.rank(); ++axis) {
      if (!identical(a[axis], b[axis]) && graph_.arena().known({Relation::eq, a[axis], b[axis]}) != true) return false;
    }
    return true;
  }

  Graph& graph_;
  size_t depth_;            // nesting of the regions around it
  std::vector<bool> made_;  // indexed by value
};

}  // namespace

Status verify(Graph& graph) { return Verifier(graph, 0).run(); }

}  // namespace tenon::graph
