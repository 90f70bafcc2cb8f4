// Rewrites a classification loss and its gradient: one element per row of a log softmax is picked, and one number per
// row is added to zeros. Both become comparisons with the positions 0, 1, ... of a row. So one kernel reads the scores,
// and no tensor of logarithms or zeros of their size is stored.
#include <algorithm>
#include <map>
#include <tuple>

#include "core/graph/passes/match.h"
#include "core/graph/passes/passes.h"
#include "core/ops/attributes.h"
#include "core/ops/ops.h"
#include "ep_api/ep_api.h"

namespace tenon::graph {
namespace {

constexpr int64_t kLeastPlaces = 4, kMostPlaces = int64_t{1} << 20;  // positions of a row

int32_t from_begin(int64_t axis, const SymDims& dims) {
  return static_cast<int32_t>(axis < 0 ? axis + dims.rank() : axis);
}

class Picked {
 public:
  explicit Picked(Graph* graph) : graph_(*graph) {}

  void run() {
    for (NodeId id = graph_.first(); id != kNoNode; id = graph_.next(id)) {
      if (is(graph_, id, OpId::gather)) pick(id);
      if (is(graph_, id, OpId::scatter)) put_in_zeros(id);
    }
    remove_dead_code(&graph_);
  }

 private:
  ValueId put(OpId op, std::vector<ValueId> inputs, NodeParts parts = {}) {
    return put_before(&graph_, before_, op, std::move(inputs), std::move(parts));
  }

  // Replaces the element at `index` of each row of a log softmax by a sum over where(position == index, logarithm, 0).
  void pick(NodeId id) {
    const ValueId all = graph_.node(id).inputs[0], index = graph_.node(id).inputs[1];
    const NodeId maker_of_all = maker(graph_, all, OpId::log_softmax);
    if (maker_of_all == kNoNode) return;
    const SymDims dims = graph_[all].dims;
    const int32_t axis = from_begin(graph_.node(id).attributes_as<AxisAttributes>().axis, dims);
    const int64_t over = graph_.node(maker_of_all).attributes_as<SoftmaxAttributes>().axis;
    if (from_begin(over, dims) != axis || !fits(dims, axis, {index}) || !is_for_kernels(all)) return;
    before_ = id;
    ReduceAttributes sum{};
    sum.axes = uint32_t{1} << axis;
    sum.keep_dims = 1;
    const ValueId chosen =
        put(OpId::where, {here(dims, axis, index), all, 0}, {.scalars = {Scalar(), Scalar(), Scalar(0.0)}});
    graph_.replace(result(graph_, id), put(OpId::sum, {chosen}, {.attributes = words_of(sum)}));
  }

  // True if all readers of `id` may be in one kernel with its producer.
  bool is_for_kernels(ValueId id) const {
    const std::vector<Use>& uses = graph_[id].uses;
    return !graph_.is_output(id) && std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
      const OpInfo& op = *graph_.node(use.node).op;
      return op.form == OpForm::elementwise || op.form == OpForm::view || op.kind == EP_PRIMITIVE_reduce ||
             is(graph_, use.node, OpId::gather);
    });
  }

  // Replaces one number per row, added to zeros, by where(position == index, number, 0).
  void put_in_zeros(NodeId id) {
    const Node& node = graph_.node(id);
    const ep_scatter_attributes at = node.attributes_as<ScatterAttributes>().scatter;
    if (at.mode != EP_GATHER_ELEMENTS || at.op != EP_SCATTER_ADD || node.inputs.size() != 3) return;
    const ValueId zeros = node.inputs[0], index = node.inputs[1], from = node.inputs[2];
    const NodeId full = maker(graph_, zeros, OpId::full);
    if (full == kNoNode || graph_.node(full).scalars[0].to_double() != 0 || from == 0) return;
    const SymDims dims = graph_[zeros].dims;
    const int32_t axis = from_begin(at.axis, dims);
    if (!fits(dims, axis, {index, from})) return;
    before_ = id;
    const ValueId where = here(dims, axis, index);
    graph_.replace(result(graph_, id), put(OpId::where, {where, as(from, row_of(dims, axis)), 0},
                                           {.scalars = {Scalar(), Scalar(), Scalar(0.0)}}));
  }

  // True where the position along `axis` equals `index`. A gather of the positions themselves handles positions that
  // are out of range, and negative ones, which count from the end.
  ValueId here(const SymDims& dims, int32_t axis, ValueId index) {
    ValueId& known = here_[{index, axis, dims[axis].number()}];
    if (known == 0) known = compare(dims, axis, index);
    return known;
  }

  ValueId compare(const SymDims& dims, int32_t axis, ValueId index) {
    AxisAttributes attributes{};
    attributes.axis = 0;
    const DType dtype = graph_[index].dtype;
    const Device device(graph_[index].device);
    const ValueId places = graph_.add_constant(places_of({dims[axis].number()}, dtype, device));
    const ValueId found =
        put(OpId::gather_slices, {places, as(index, row_of(dims, axis))}, {.attributes = words_of(attributes)});
    Dims along = Dims::filled(dims.rank(), 1);
    along[axis] = dims[axis].number();
    return put(OpId::eq, {found, graph_.add_constant(places_of(along, dtype, device))});
  }

  static SymDims row_of(SymDims dims, int32_t axis) {
    dims[axis] = 1;
    return dims;
  }

  // True if `rows` have one element for each row along `axis` of a floating-point tensor of `dims`.
  bool fits(const SymDims& dims, int32_t axis, std::initializer_list<ValueId> rows) {
    if (!dims[axis].is_number() || dims[axis].number() < kLeastPlaces || dims[axis].number() > kMostPlaces)
      return false;
    return std::all_of(rows.begin(), rows.end(), [&](ValueId id) { return is_known_as(id, row_of(dims, axis)); });
  }

  bool is_known_as(ValueId id, const SymDims& dims) {
    const SymDims own = graph_[id].dims;
    if (own.rank() != dims.rank() || same_dims(own, dims)) return own.rank() == dims.rank();
    for (int32_t axis = 0; axis < own.rank(); ++axis) {
      if (!dims[axis].is_number() || graph_.arena().known({Relation::eq, own[axis], dims[axis]}) != true) return false;
    }
    return true;
  }

  // `id` with `dims` as numbers; they are known to be its dims.
  ValueId as(ValueId id, const SymDims& dims) {
    if (same_dims(graph_[id].dims, dims)) return id;
    ShapeAttributes attributes{};
    std::vector<int64_t> numbers;
    for (SymDim dim : dims) numbers.push_back(dim.number());
    attributes.dims = DimsAttribute::of(numbers);
    return put(OpId::reshape, {id}, {.attributes = words_of(attributes)});
  }

  // 0, 1, ... in this shape.
  static Tensor places_of(const Dims& shape, DType dtype, const Device& device) {
    const InterpreterScope scope(eager_interpreter());
    return contiguous(reshape(arange(Scalar(element_count(shape)), dtype, device), shape));
  }

  Graph& graph_;
  NodeId before_ = kNoNode;  // nodes are inserted before it
  // by index, axis and length; nodes are visited in order
  std::map<std::tuple<ValueId, int32_t, int64_t>, ValueId> here_;
};

}  // namespace

// Without fused kernels, comparisons would be slower.
void find_picked(Graph* graph, const PassOptions& options) {
  if (fuses(options)) Picked(graph).run();
}

}  // namespace tenon::graph
