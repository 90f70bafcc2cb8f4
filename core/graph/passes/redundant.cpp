// Removes nodes that change nothing, and views of views. Everything here is exact: x + 0 stays, because -0 + 0 is 0.
// Sums are added in the order of their elements in memory, so with PassOptions::exact a node that may change that order
// stays too.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/graph/passes/match.h"
#include "core/graph/passes/passes.h"
#include "core/ops/attributes.h"

namespace tenon::graph {
namespace {

class Redundant {
 public:
  // `exact`: keeps nodes that may change the order of elements.
  Redundant(Graph* graph, bool exact)
      : graph_(*graph), exact_(exact), row_major_(graph->value_count(), true) {}  // inputs are row-major

  void run() {
    for (NodeId id = graph_.first(); id != kNoNode;) {
      const NodeId after = graph_.next(id);
      visit(id);
      id = after;
    }
  }

 private:
  const Node& node(NodeId id) const { return graph_.node(id); }
  bool is_reshape(NodeId id) const { return is(graph_, id, OpId::reshape) || is(graph_, id, OpId::view); }

  // True if `value` is row-major, or if its order does not matter. Newly inserted values count as not row-major.
  bool order_known(ValueId value) const {
    const Tensor& constant = graph_[value].constant;
    return !exact_ || value == 0 ||
           (constant.defined() ? constant.contiguous() : value < row_major_.size() && row_major_[value]);
  }

  // Notes if the results of `id` are certainly row-major in the graph. A new result is, if the axes of all inputs are
  // in row-major order; gaps and broadcasts are allowed.
  void note_order(NodeId id) {
    row_major_.resize(graph_.value_count(), false);
    in_order_.resize(graph_.value_count(), false);
    const bool is_view = node(id).op->form == OpForm::view;
    const bool dense = !is_view || is_any(id, {OpId::reshape, OpId::view, OpId::squeeze, OpId::unsqueeze});
    const bool ordered = dense || is_any(id, {OpId::expand, OpId::slice, OpId::select});
    const auto all = [&](const std::vector<bool>& known) {
      return std::all_of(node(id).inputs.begin(), node(id).inputs.end(),
                         [&](ValueId input) { return order_known(input) || (input < known.size() && known[input]); });
    };
    const bool controls = !node(id).regions.empty();  // the results of control flow are always row-major
    for (ValueId made : node(id).results) {
      row_major_[made] = controls || (dense && all(is_view ? row_major_ : in_order_));
      in_order_[made] = controls || (ordered && all(in_order_));
    }
  }
  bool is_any(NodeId id, std::initializer_list<OpId> ops) const {
    return std::any_of(ops.begin(), ops.end(), [&](OpId op) { return is(graph_, id, op); });
  }

  void visit(NodeId id) {
    if (is_reshape(id)) join_reshapes(id);
    if (is(graph_, id, OpId::permute)) join_permutes(id);
    if (is(graph_, id, OpId::cast)) join_casts(id);
    if (changes_nothing(id) && (node(id).op->form == OpForm::view || order_known(node(id).inputs[0]))) {
      graph_.replace(result(graph_, id), node(id).inputs[0]);
      graph_.erase(id);
    } else if (exact_ && node(id).op != nullptr) {
      note_order(id);
    }
  }

  bool same_type(NodeId id) const {
    const Value &from = graph_[node(id).inputs[0]], &to = graph_[result(graph_, id)];
    return from.dtype == to.dtype && from.device == to.device && same_dims(from.dims, to.dims);
  }

  // True if the result of `id` is its first input.
  bool changes_nothing(NodeId id) const {
    if (node(id).inputs.empty() || node(id).inputs[0] == 0 || node(id).results.size() != 1 || !same_type(id)) {
      return false;
    }
    if (is_reshape(id) || is(graph_, id, OpId::cast) || is(graph_, id, OpId::to) || is(graph_, id, OpId::expand) ||
        is(graph_, id, OpId::squeeze) || is(graph_, id, OpId::unsqueeze)) {
      return true;
    }
    if (is(graph_, id, OpId::permute)) return is_identity(axes_of(id));
    // A slice of all elements: steps are positive, and the length is unchanged.
    if (is(graph_, id, OpId::slice)) return true;
    if (is(graph_, id, OpId::pad)) return node(id).patches.empty() && pads_nothing(id);
    if (adds_nothing(id)) return true;
    const bool by_one = is(graph_, id, OpId::mul) || is(graph_, id, OpId::div);
    return by_one && node(id).inputs.size() == 2 && number(graph_, id, 1) == 1.0;
  }

  bool pads_nothing(NodeId id) const {
    const auto& window = node(id).attributes_as<PadAttributes>().window;
    const auto zero = [](int64_t size) { return size == 0; };
    return std::all_of(std::begin(window.low), std::end(window.low), zero) &&
           std::all_of(std::begin(window.high), std::end(window.high), zero);
  }

  // x - 0 and x + -0; for integers also x + 0.
  bool adds_nothing(NodeId id) const {
    const bool add = is(graph_, id, OpId::add);
    if ((!add && !is(graph_, id, OpId::sub)) || node(id).inputs.size() != 2) return false;
    const std::optional<double> given = number(graph_, id, 1);
    if (!given || *given != 0) return false;
    return !is_floating(graph_[result(graph_, id)].dtype) || std::signbit(*given) == add;
  }

  // A cast after a lossless cast only needs the last one.
  void join_casts(NodeId id) {
    const NodeId before = maker(graph_, node(id).inputs[0], OpId::cast);
    if (before == kNoNode || !order_known(node(before).inputs[0])) return;
    const DType first = graph_[node(before).inputs[0]].dtype, last = graph_[result(graph_, id)].dtype;
    if (!holds_all(first, graph_[node(id).inputs[0]].dtype)) return;
    if (is_floating(first) && !is_floating(last)) return;  // numbers out of range may differ
    graph_.set_inputs(id, {node(before).inputs[0]});
  }

  // True if `wide` has every number of `narrow`.
  static bool holds_all(DType narrow, DType wide) {
    if (narrow == wide || narrow == DType::boolean) return true;
    if (wide == DType::f64) return narrow == DType::f32 || narrow == DType::i32;
    return wide == DType::i64 && narrow == DType::i32;
  }

  // A reshape of a reshape only needs the last one.
  void join_reshapes(NodeId id) {
    const NodeId before = graph_[node(id).inputs[0]].producer;
    if (is_reshape(before) && order_known(node(before).inputs[0])) graph_.set_inputs(id, {node(before).inputs[0]});
  }

  std::vector<int64_t> axes_of(NodeId id) const {
    const auto axes = node(id).attributes_as<PermuteAttributes>().axes.span();
    std::vector<int64_t> all(axes.begin(), axes.end());
    for (int64_t& axis : all) axis += axis < 0 ? static_cast<int64_t>(all.size()) : 0;
    return all;
  }
  static bool is_identity(const std::vector<int64_t>& axes) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] != static_cast<int64_t>(i)) return false;
    }
    return true;
  }

  // A permutation of a permutation becomes one permutation.
  void join_permutes(NodeId id) {
    const NodeId before = maker(graph_, node(id).inputs[0], OpId::permute);
    if (before == kNoNode) return;
    const std::vector<int64_t> inner = axes_of(before);
    std::vector<int64_t> joined = axes_of(id);
    for (int64_t& axis : joined) axis = inner[static_cast<size_t>(axis)];
    PermuteAttributes attributes{};
    attributes.axes = DimsAttribute::of(joined);
    Node one = node(id);
    one.results.clear();
    one.inputs = {node(before).inputs[0]};
    std::memcpy(one.attributes.data(), &attributes, sizeof attributes);
    const NodeId made = graph_.insert(id, std::move(one));
    graph_.replace(result(graph_, id), result(graph_, made));
    graph_.erase(id);
    if (is_identity(joined)) {
      graph_.replace(result(graph_, made), node(made).inputs[0]);
      graph_.erase(made);
    }
  }

  Graph& graph_;
  bool exact_;
  std::vector<bool> row_major_;
  std::vector<bool> in_order_;  // row-major except for gaps and broadcasts
};

}  // namespace

void remove_redundant(Graph* graph, const PassOptions& options) {
  Redundant(graph, options.exact).run();
  remove_dead_code(graph, options);
}

}  // namespace tenon::graph
