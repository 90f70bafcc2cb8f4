#include "core/codegen/fuse/split.h"

#include <optional>

#include "core/codegen/axes/access.h"
#include "core/codegen/fuse/legality.h"
#include "core/graph/passes/match.h"
#include "core/graph/passes/passes.h"
#include "core/ops/attributes.h"

namespace tenon::codegen {
namespace {

using graph::Graph;
using graph::is;
using graph::kNoNode;
using graph::maker;
using graph::Node;
using graph::NodeId;
using graph::result;
using graph::ValueId;

// parts of one long axis: the first one that divides it is used
constexpr int64_t kParts[] = {64, 60, 48, 40, 32, 24, 20, 16};

// The input of a reduction, and the axes that the first of the two reductions reduces.
struct Parts {
  ValueId from = 0;
  uint32_t axes = 0;
  uint32_t inner = 0;
};

class Splitting {
 public:
  explicit Splitting(Graph* graph) : graph_(*graph) {}

  void run() {
    each([this](NodeId id, const Parts& parts) { split_variance(id, parts); });
    for (NodeId id = graph_.first(); id != kNoNode;) {
      const NodeId next = graph_.next(id);
      part_axis(id);
      id = next;
    }
    each([this](NodeId id, const Parts& parts) {
      if (is_computed(parts.from)) put(id, reduced(id, id, parts.from, parts.inner, true), parts.axes);
    });
    graph::remove_dead_code(&graph_);
  }

 private:
  // Calls `visit` for each node; it may remove the node and nodes before it.
  template <class Visit>
  void each(const Visit& visit) {
    for (NodeId id = graph_.first(); id != kNoNode;) {
      const NodeId next = graph_.next(id);
      if (const std::optional<Parts> parts = parts_of(id)) visit(id, *parts);
      id = next;
    }
  }

  double hint(SymDim size) const { return static_cast<double>(graph_.arena().hint(size).value_or(1)); }

  bool is_reduction(NodeId id) const {
    const bool known = is(graph_, id, OpId::sum) || is(graph_, id, OpId::mean) || is(graph_, id, OpId::amax) ||
                       is(graph_, id, OpId::amin);
    if (!known || !graph_.node(id).epilogues.empty() || !graph_.node(id).patches.empty()) return false;
    const graph::Value &from = graph_[graph_.node(id).inputs[0]], &to = graph_[result(graph_, id)];
    return (from.dtype == DType::f32 || from.dtype == DType::f64) && to.dtype == from.dtype;
  }

  std::optional<Parts> parts_of(NodeId id) const {
    if (!is_reduction(id)) return std::nullopt;
    Parts parts{graph_.node(id).inputs[0], graph_.node(id).attributes_as<ReduceAttributes>().axes, 0};
    const graph::Value& from = graph_[parts.from];
    double items = 1, first = 0, rest = 1;
    for (int32_t dim = 0; dim < from.dims.rank(); ++dim) {
      const double size = hint(from.dims[dim]);
      if ((parts.axes >> dim & 1) == 0) {
        items *= size;
      } else if (first == 0) {
        first = size;
      } else {
        rest *= size;
        parts.inner |= 1u << dim;
      }
    }
    const bool long_items = items < kFewItems && items * first * rest >= kManyElements;
    if (!long_items || first < kFewItems || rest < kFewItems) return std::nullopt;
    return parts;
  }

  ValueId insert(NodeId before, OpId op, std::vector<ValueId> inputs) {
    Node node;
    node.op = &op_row(op);
    node.inputs = std::move(inputs);
    node.label = graph_.node(before).label;
    return result(graph_, graph_.insert(before, std::move(node)));
  }

  // The reduction like `id`, of `from` over `axes`, inserted before the node `before`.
  ValueId reduced(NodeId before, NodeId id, ValueId from, uint32_t axes, bool keep_dims) {
    Node node = graph_.node(id);
    auto attributes = node.attributes_as<ReduceAttributes>();
    attributes.axes = axes;
    attributes.keep_dims = keep_dims ? 1 : 0;
    node.attributes = graph::words_of(attributes);
    node.inputs = {from};
    node.results.clear();
    return result(graph_, graph_.insert(before, std::move(node)));
  }

  // Replaces `id` by the reduction of `of`, the results of the parts.
  void put(NodeId id, ValueId of, uint32_t axes) {
    const bool keeps = graph_.node(id).attributes_as<ReduceAttributes>().keep_dims != 0;
    const ValueId made = reduced(id, id, of, axes, keeps);
    graph_.replace(result(graph_, id), made);
    graph_.erase(id);
  }

  bool is_computed(ValueId value) {
    const NodeId by = graph_[value].producer;
    if (by == kNoNode) return false;
    if (is(graph_, by, OpId::reshape)) return is_computed(graph_.node(by).inputs[0]);
    const Access access = access_of(graph_, by);
    return access.role == Role::map && !access.view && access.cost > 0;
  }

  // Turns a reduction of one long axis of known length into one over two axes, which can be split.
  void part_axis(NodeId id) {
    if (!is_reduction(id)) return;
    const ValueId from = graph_.node(id).inputs[0];
    const auto attributes = graph_.node(id).attributes_as<ReduceAttributes>();
    std::vector<int64_t> dims, kept;
    double items = 1;
    int64_t length = 0, parts = 0;
    for (int32_t dim = 0; dim < graph_[from].dims.rank(); ++dim) {
      const SymDim size = graph_[from].dims[dim];
      if (!size.is_number()) return;
      if (attributes.axes != 1u << dim) {
        items *= static_cast<double>(size.number());
        dims.push_back(size.number());
        continue;
      }
      length = size.number();
      for (const int64_t each : kParts) parts = parts == 0 && length % each == 0 ? each : parts;
      if (parts == 0) return;
      dims.insert(dims.end(), {parts, length / parts});
    }
    const bool is_long = items < kFewItems && items * static_cast<double>(length) >= kManyElements;
    if (!is_long || dims.size() >= EP_MAX_RANK || !is_computed(from)) return;
    for (const SymDim size : graph_[result(graph_, id)].dims) kept.push_back(size.number());
    const ValueId made = reduced(id, id, reshaped(id, from, dims), attributes.axes * 3, false);
    graph_.replace(result(graph_, id), reshaped(id, made, kept));
    graph_.erase(id);
  }

  ValueId reshaped(NodeId before, ValueId value, const std::vector<int64_t>& dims) {
    Node node;
    node.op = &op_row(OpId::reshape);
    node.inputs = {value};
    node.attributes = graph::words_of(ShapeAttributes{DimsAttribute::of(dims)});
    node.label = graph_.node(before).label;
    return result(graph_, graph_.insert(before, std::move(node)));
  }

  // Splits the mean of (x - m)^2, where m is the mean of x. With p the mean of a part, the part's mean of (x - p)^2 is
  // less than its mean of (x - m)^2 by (p - m)^2.
  void split_variance(NodeId id, const Parts& parts) {
    if (!is(graph_, id, OpId::mean)) return;
    const ValueId centred = square_of(parts.from);
    const NodeId difference = centred == 0 ? kNoNode : maker(graph_, centred, OpId::sub);
    if (difference == kNoNode || graph_.node(difference).inputs[0] == 0) return;
    const ValueId x = graph_.node(difference).inputs[0];
    const NodeId mean = mean_behind(graph_.node(difference).inputs[1]);
    if (mean == kNoNode || graph_.node(mean).inputs[0] != x) return;
    if (graph_.node(mean).attributes_as<ReduceAttributes>().axes != parts.axes) return;
    const ValueId part = reduced(mean, mean, x, parts.inner, true);
    const ValueId whole = reduced(mean, mean, part, parts.axes, true);
    const ValueId near = insert(id, OpId::square, {insert(id, OpId::sub, {x, part})});
    const ValueId apart = insert(id, OpId::square, {insert(id, OpId::sub, {part, whole})});
    const ValueId sum = insert(id, OpId::add, {reduced(id, id, near, parts.inner, true), apart});
    put(mean, part, parts.axes);
    put(id, sum, parts.axes);
  }

  ValueId square_of(ValueId value) const {
    if (const NodeId by = maker(graph_, value, OpId::square); by != kNoNode) return graph_.node(by).inputs[0];
    const NodeId by = maker(graph_, value, OpId::mul);
    if (by == kNoNode || graph_.node(by).inputs.size() != 2) return 0;
    return graph_.node(by).inputs[0] == graph_.node(by).inputs[1] ? graph_.node(by).inputs[0] : 0;
  }

  // The mean that computes `value`, of one element, possibly through views.
  NodeId mean_behind(ValueId value) const {
    if (value == 0) return kNoNode;
    for (const SymDim size : graph_[value].dims) {
      if (!identical(size, SymDim(1))) return kNoNode;
    }
    for (NodeId by = graph_[value].producer; by != kNoNode; by = graph_[value].producer) {
      if (is(graph_, by, OpId::mean)) return by;
      if (!is(graph_, by, OpId::reshape) && !is(graph_, by, OpId::unsqueeze) && !is(graph_, by, OpId::squeeze)) break;
      value = graph_.node(by).inputs[0];
    }
    return kNoNode;
  }

  Graph& graph_;
};

}  // namespace

void split_reductions(Graph* graph) { Splitting(graph).run(); }

}  // namespace tenon::codegen
