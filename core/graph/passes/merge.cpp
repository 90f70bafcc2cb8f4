// Merges products of one row by several constant matrices, such as queries, keys and values, or gate and up, in a
// decoder's step. They become one product by all columns, and a slice for each.
#include <map>
#include <tuple>

#include "core/graph/passes/match.h"
#include "core/graph/passes/passes.h"
#include "core/ops/attributes.h"
#include "core/ops/ops.h"

namespace tenon::graph {
namespace {

constexpr uint64_t kColumns = 0x636f6c756d6e73;  // key of FoldedConstants for concatenated matrices

// A product by a constant matrix, and the addition of a constant list to it, or kNoNode.
struct Linear {
  NodeId product = kNoNode;
  NodeId add = kNoNode;
};

class Merge {
 public:
  Merge(Graph* graph, FoldedConstants* folded) : graph_(*graph), folded_(folded) {}

  void run() {
    // By input, precision and presence of an added list; in program order.
    std::map<std::tuple<ValueId, Precision, bool>, std::vector<Linear>> groups;
    for (NodeId id = graph_.first(); id != kNoNode; id = graph_.next(id)) {
      if (!is_product(id)) continue;
      const Linear linear{id, add_of(id)};
      const Node& node = graph_.node(id);
      groups[{node.inputs[0], node.precision, linear.add != kNoNode}].push_back(linear);
    }
    for (const auto& [key, group] : groups) {
      if (group.size() > 1) merge(group);
    }
  }

 private:
  // True for products of one row. Other products are as fast alone, and their slices of the merged result would have
  // strides.
  bool is_product(NodeId id) const {
    if (!is(graph_, id, OpId::matmul) || !graph_.node(id).epilogues.empty()) return false;
    const Value &x = graph_[graph_.node(id).inputs[0]], &matrix = graph_[graph_.node(id).inputs[1]];
    if (!matrix.constant.defined() || matrix.dims.rank() != 2 || x.dims.rank() < 2) return false;
    for (int32_t axis = 0; axis + 1 < x.dims.rank(); ++axis) {
      if (!x.dims[axis].is_number() || x.dims[axis].number() != 1) return false;
    }
    return is_floating(x.dtype) && matrix.device == x.device && matrix.constant.elements() != 0;
  }

  NodeId add_of(NodeId product) const {
    const NodeId add = only_reader(graph_, result(graph_, product), OpId::add);
    if (add == kNoNode || graph_.node(add).precision != graph_.node(product).precision) return kNoNode;
    const ValueId list = other_input(graph_, add, result(graph_, product));
    const Value& made = graph_[result(graph_, product)];
    if (list == 0 || !graph_[list].constant.defined() || graph_[list].dtype != made.dtype) return kNoNode;
    const bool fits = graph_[list].dims.rank() == 1 && identical(graph_[list].dims[0], made.dims.back());
    return fits ? add : kNoNode;
  }

  ValueId list_of(const Linear& linear) const {
    return other_input(graph_, linear.add, result(graph_, linear.product));
  }

  // The constants concatenated along their last axis.
  ValueId beside(const TensorList& parts) {
    const auto make = [&]() -> TensorList {
      const InterpreterScope scope(eager_interpreter());
      return {contiguous(concat(parts, -1))};
    };
    return graph_.add_constant(folded_ != nullptr ? folded_->get(kColumns, parts, make)[0] : make()[0]);
  }

  void merge(const std::vector<Linear>& group) {
    const NodeId first = group[0].product;
    TensorList matrices, lists;
    for (const Linear& linear : group) {
      matrices.push_back(graph_[graph_.node(linear.product).inputs[1]].constant);
      if (linear.add != kNoNode) lists.push_back(graph_[list_of(linear)].constant);
    }
    ValueId all = put_before(&graph_, first, OpId::matmul, {graph_.node(first).inputs[0], beside(matrices)});
    if (!lists.empty()) all = put_before(&graph_, first, OpId::add, {all, beside(lists)});
    int64_t begin = 0;
    for (const Linear& linear : group) {
      const ValueId old = result(graph_, linear.add != kNoNode ? linear.add : linear.product);
      SliceAttributes part{};
      part.axis = graph_[old].dims.rank() - 1;
      part.start = begin;
      part.end = begin += graph_[old].dims.back().number();
      part.step = 1;
      graph_.replace(old, put_before(&graph_, first, OpId::slice, {all}, {.attributes = words_of(part)}));
    }
  }

  Graph& graph_;
  FoldedConstants* folded_;
};

}  // namespace

void merge_products(Graph* graph, const PassOptions& options) {
  Merge(graph, options.folded).run();
  remove_dead_code(graph, options);
}

}  // namespace tenon::graph
