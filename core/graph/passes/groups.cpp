// Finds heads that share keys and values as exporters write them: keys are repeated for each head of a group, and
// multiplied. The heads of a group become rows of one product, so that nothing is repeated.
#include <algorithm>
#include <iterator>
#include <vector>

#include "core/graph/passes/match.h"
#include "core/graph/passes/passes.h"
#include "core/ops/attributes.h"

namespace tenon::graph {
namespace {

// The product of a [B, groups * heads, M, K] and one matrix per group, which is [B, groups, 1, S, D] repeated `heads`
// times.
class Groups {
 public:
  Groups(Graph* graph, NodeId product) : graph_(*graph), product_(product) {}

  void run() {
    const Node& product = graph_.node(product_);
    const SymDims& left = graph_[product.inputs[0]].dims;
    if (!product.epilogues.empty() || left.rank() != 4) return;
    if (!find_repeated(product.inputs[1])) return;
    const SymDims& groups = graph_[once_].dims;
    if (!identical(left[0], groups[0]) || !left[1].is_number()) return;
    if (left[1].number() != groups[1].number() * heads_) return;
    replace(left, groups);
  }

 private:
  // Finds unsqueeze or reshape to [B, groups, 1, S, D], expand, reshape to [B, groups * heads, S, D], and optionally a
  // permutation of the last two axes.
  bool find_repeated(ValueId value) {
    const NodeId turn = maker(graph_, value, OpId::permute);
    if (turn != kNoNode) {
      const auto axes = graph_.node(turn).attributes_as<PermuteAttributes>().axes.span();
      const int64_t swapped[] = {0, 1, 3, 2};
      if (!std::equal(axes.begin(), axes.end(), std::begin(swapped), std::end(swapped))) return false;
      turned_ = true;
      value = graph_.node(turn).inputs[0];
    }
    const NodeId reshape = maker(graph_, value, OpId::reshape);
    if (reshape == kNoNode) return false;
    const NodeId expand = maker(graph_, uncopied(graph_.node(reshape).inputs[0]), OpId::expand);
    if (expand == kNoNode) return false;
    once_ = graph_.node(expand).inputs[0];
    return fits(graph_[once_].dims, graph_[result(graph_, expand)].dims, graph_[value].dims);
  }

  // The value that `value` is a row-major copy of.
  ValueId uncopied(ValueId value) const {
    const NodeId copy = maker(graph_, value, OpId::cast);
    if (copy == kNoNode) return value;
    const ValueId from = graph_.node(copy).inputs[0];
    return graph_[from].dtype == graph_[value].dtype ? from : value;
  }

  bool fits(const SymDims& once, const SymDims& repeated, const SymDims& joined) {
    if (once.rank() != 5 || repeated.rank() != 5 || joined.rank() != 4) return false;
    if (!once[1].is_number() || !once[2].is_number() || once[2].number() != 1) return false;
    if (!repeated[2].is_number() || !joined[1].is_number()) return false;
    heads_ = repeated[2].number();
    for (int32_t axis : {0, 1, 3, 4}) {
      if (!identical(once[axis], repeated[axis])) return false;
    }
    return heads_ > 1 && joined[1].number() == once[1].number() * heads_ && identical(joined[0], once[0]) &&
           identical(joined[2], once[3]) && identical(joined[3], once[4]);
  }

  ValueId reshaped(ValueId value, const std::vector<SymDim>& dims) {
    ShapeAttributes shape{};
    std::vector<Patch> patches;
    shape.dims.rank = static_cast<int64_t>(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) {
      shape.dims.values[i] = graph_.arena().hint(dims[i]).value_or(0);
      if (!dims[i].is_number()) patches.push_back({static_cast<uint32_t>(1 + i), dims[i]});
    }
    return put_before(&graph_, product_, OpId::reshape, {value},
                      {.attributes = words_of(shape), .patches = std::move(patches)});
  }

  void replace(const SymDims left, const SymDims groups) {
    const symbolic::ArenaScope scope(graph_.arena());
    const SymDim rows = left[2] * SymDim(heads_);
    const ValueId joined = reshaped(graph_.node(product_).inputs[0], {left[0], groups[1], rows, left[3]});
    AxesAttributes third{};
    third.axes = DimsAttribute::of(std::vector<int64_t>{2});
    ValueId matrix = put_before(&graph_, product_, OpId::squeeze, {once_}, {.attributes = words_of(third)});
    if (turned_) {
      PermuteAttributes swap{};
      swap.axes = DimsAttribute::of(std::vector<int64_t>{0, 1, 3, 2});
      matrix = put_before(&graph_, product_, OpId::permute, {matrix}, {.attributes = words_of(swap)});
    }
    const ValueId made = put_before(&graph_, product_, OpId::matmul, {joined, matrix});
    const SymDims dims = graph_[result(graph_, product_)].dims;
    graph_.replace(result(graph_, product_), reshaped(made, {dims.begin(), dims.end()}));
  }

  Graph& graph_;
  NodeId product_;
  ValueId once_ = 0;
  int64_t heads_ = 0;
  bool turned_ = false;
};

}  // namespace

void join_groups(Graph* graph, const PassOptions& options) {
  for (NodeId id = graph->first(); id != kNoNode; id = graph->next(id)) {
    if (is(*graph, id, OpId::matmul)) Groups(graph, id).run();
  }
  remove_dead_code(graph, options);
}

}  // namespace tenon::graph
