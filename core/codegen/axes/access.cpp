#include "core/codegen/axes/access.h"

#include <algorithm>

#include "core/ops/attributes.h"
#include "core/ops/op_rows.h"
#include "primitives/table/table.h"

namespace tenon::codegen {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Value;
using graph::ValueId;

constexpr int32_t kCheap = 1, kDivision = 4, kFunction = 8;

bool computed_with(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::f64:
    case DType::f16:
    case DType::bf16:
    case DType::i8:
    case DType::i16:
    case DType::i32:
    case DType::i64:
    case DType::u8:
    case DType::boolean: return true;
    default: return false;
  }
}

int32_t cost_of(OpId op) {
  switch (op) {
    case OpId::div:
    case OpId::sqrt:
    case OpId::rsqrt:
    case OpId::reciprocal:
    case OpId::remainder:
    case OpId::fmod:
    case OpId::floor_divide:
    case OpId::softsign: return kDivision;
    case OpId::add:
    case OpId::sub:
    case OpId::mul:
    case OpId::neg:
    case OpId::abs:
    case OpId::square:
    case OpId::relu:
    case OpId::maximum:
    case OpId::minimum:
    case OpId::eq:
    case OpId::ne:
    case OpId::lt:
    case OpId::le:
    case OpId::gt:
    case OpId::ge:
    case OpId::logical_and:
    case OpId::logical_or:
    case OpId::logical_not:
    case OpId::where:
    case OpId::clamp:
    case OpId::fma:
    case OpId::cast: return kCheap;
    default: return kFunction;
  }
}

class Reader {
 public:
  Reader(Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  Access run() {
    if (!plain()) return {};
    if (node_.op->form == OpForm::elementwise) return elementwise() ? made_ : Access{};
    return own_row() && by_op() ? made_ : Access{};
  }

 private:
  const Value& input(size_t i) const { return graph_[node_.inputs[i]]; }
  const Value& result() const { return graph_[node_.results[0]]; }
  SymDims dims(size_t i) { return dims_of(graph_, node_.inputs[i]); }
  SymDims result_dims() { return dims_of(graph_, node_.results[0]); }
  // True for an op of the op table; ops from outside have ids after the table.
  bool own_row() const { return node_.op->id < op_table().size(); }
  OpId op() const { return static_cast<OpId>(node_.op->id); }
  int32_t rank() const { return result().dims.rank(); }

  bool plain() const {
    if (node_.results.size() != 1 || !node_.epilogues.empty() || !node_.regions.empty()) return false;
    if (!computed_with(result().dtype) || result().device == nullptr) return false;
    return std::all_of(node_.inputs.begin(), node_.inputs.end(), [&](ValueId id) {
      return id == 0 || (computed_with(graph_[id].dtype) && graph_[id].device == result().device);
    });
  }

  bool one(SymDim size) const { return identical(size, SymDim(1)); }
  bool equal(SymDim a, SymDim b) {
    return identical(a, b) || graph_.arena().known({Relation::eq, a, b}).value_or(false);
  }
  void link(size_t input, int32_t in, int32_t out) { link(input, in, 1, out, 1); }
  void link(size_t input, int32_t in, int32_t in_count, int32_t out, int32_t out_count) {
    made_.links.push_back({static_cast<uint32_t>(input), in, in_count, out, out_count});
  }
  bool as(Role role, int32_t cost) {
    made_.role = role;
    made_.cost = cost;
    return true;
  }
  bool as_view() {
    made_.view = true;
    return as(Role::map, 0);
  }

  // Returns false if the compiler cannot know that the input broadcasts.
  bool broadcast(size_t i) {
    const SymDims own = dims(i), all = result_dims();
    const int32_t behind = all.rank() - own.rank();
    if (behind < 0) return false;
    for (int32_t dim = 0; dim < own.rank(); ++dim) {
      if (equal(own[dim], all[dim + behind])) {
        link(i, dim, dim + behind);
      } else if (!one(own[dim])) {
        return false;
      }
    }
    return true;
  }

  bool elementwise() {
    const table::ScalarRow* row =
        node_.op->kind == EP_PRIMITIVE_binary ? table::binary_row(node_.op->scalar_op) : nullptr;
    const bool divides = row != nullptr && row->check == table::Check::DIVISOR;
    if (divides && !is_floating(result().dtype)) return false;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      if (node_.inputs[i] != 0 && !broadcast(i)) return false;
    }
    return as(Role::map, own_row() ? cost_of(op()) : kFunction);
  }

  bool by_op() {
    switch (op()) {
      case OpId::cast:
        if (node_.attributes_as<CastAttributes>().channels_last != 0) return false;
        return broadcast(0) && as(Role::map, kCheap);
      case OpId::full: return as(Role::map, 0);
      case OpId::reshape:
      case OpId::view:
      case OpId::squeeze:
      case OpId::unsqueeze: link(0, 0, input(0).dims.rank(), 0, rank()); return as_view();
      case OpId::expand: return broadcast(0) && as_view();
      case OpId::permute: return permute();
      case OpId::slice: return slice();
      case OpId::select: return select();
      case OpId::concat: return concat();
      case OpId::pad: return pad();
      case OpId::gather: return gather();
      case OpId::slice_scatter: return slice_scatter();
      case OpId::softmax:
      case OpId::log_softmax: return rows(node_.attributes_as<SoftmaxAttributes>().axis, 1);
      case OpId::layer_norm:
      case OpId::rms_norm: return norm();
      default: return node_.op->kind == EP_PRIMITIVE_reduce && reduce();
    }
  }

  bool permute() {
    const auto axes = node_.attributes_as<PermuteAttributes>().axes.span();
    for (int32_t dim = 0; dim < rank(); ++dim) {
      const int64_t from = axes[static_cast<size_t>(dim)];
      link(0, static_cast<int32_t>(from < 0 ? from + rank() : from), dim);
    }
    return as_view();
  }

  bool slice() {
    const auto& attributes = node_.attributes_as<SliceAttributes>();
    const SymDims from = dims(0), all = result_dims();
    for (int32_t dim = 0; dim < rank(); ++dim) {
      const bool whole = attributes.step == 1 && equal(from[dim], all[dim]);
      if (dim != attributes.axis || whole) link(0, dim, dim);
    }
    return as_view();
  }

  bool select() {
    int64_t axis = node_.attributes_as<SelectAttributes>().axis;
    if (axis < 0) axis += input(0).dims.rank();
    for (int32_t dim = 0; dim < rank(); ++dim) link(0, dim < axis ? dim : dim + 1, dim);
    return as_view();
  }

  bool concat() {
    const int32_t axis = node_.attributes_as<AxisAttributes>().axis;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      for (int32_t dim = 0; dim < rank(); ++dim) {
        if (dim != axis) link(i, dim, dim);
      }
    }
    return as_put();
  }

  bool as_put() {
    made_.puts = true;
    return as(Role::map, kCheap);
  }

  // A gather of one element per row. Gathers of more elements have an axis of their own.
  bool gather() {
    const int32_t axis = node_.attributes_as<AxisAttributes>().axis;
    const SymDims from = dims(0), all = result_dims();
    if (!is_floating(result().dtype) || !one(all[axis])) return false;
    for (int32_t dim = 0; dim < rank(); ++dim) {
      if (dim == axis) continue;
      if (!equal(from[dim], all[dim])) return false;
      link(0, dim, dim);
      link(1, dim, dim);
    }
    made_.reduced = 1u << axis;
    made_.picks = true;
    return as(Role::reduce, kCheap);
  }

  // Padding with constants around the input. A dim without padding is read at its own index.
  bool pad() {
    const ep_pad_attributes& window = node_.attributes_as<PadAttributes>().window;
    if (window.mode != EP_PAD_CONSTANT) return false;
    const SymCall call = call_of(node_);
    const SymDims from = dims(0), all = result_dims();
    for (int32_t dim = 0; dim < rank(); ++dim) {
      if (identical(size_of(call, window.low[dim]), SymDim(0)) && equal(from[dim], all[dim])) link(0, dim, dim);
    }
    return as_put();
  }

  bool slice_scatter() {
    if (input(1).dtype != result().dtype || input(1).dims.rank() != rank()) return false;
    const SymDims part = dims(1), all = result_dims();
    const int32_t axis = node_.attributes_as<SliceAttributes>().axis;
    for (int32_t dim = 0; dim < rank(); ++dim) {
      link(0, dim, dim);
      if (dim == axis) continue;
      if (!equal(part[dim], all[dim])) return false;
      link(1, dim, dim);
    }
    return as_put();
  }

  bool reduce() {
    const auto& attributes = node_.attributes_as<ReduceAttributes>();
    int32_t out = 0;
    for (int32_t dim = 0; dim < input(0).dims.rank(); ++dim) {
      if ((attributes.axes >> dim & 1) != 0) {
        out += attributes.keep_dims != 0 ? 1 : 0;
      } else {
        link(0, dim, out++);
      }
    }
    made_.reduced = attributes.axes;
    return as(Role::reduce, kCheap);
  }

  // Rows along `count` dims, starting at `first`.
  bool rows(int32_t first, int32_t count) {
    if (!is_floating(result().dtype)) return false;
    if (input(0).dtype != result().dtype || !broadcast(0)) return false;
    for (int32_t dim = first; dim < first + count; ++dim) made_.reduced |= 1u << dim;
    return as(Role::rows, kFunction);
  }

  bool norm() {
    const int32_t axis = node_.attributes_as<AxisAttributes>().axis;
    for (size_t i = 1; i < node_.inputs.size(); ++i) {
      if (node_.inputs[i] != 0 && (input(i).dtype != result().dtype || !broadcast(i))) return false;
    }
    return rows(axis, rank() - axis);
  }

  Graph& graph_;
  const Node& node_;
  Access made_;
};

}  // namespace

SymDims dims_of(Graph& graph, ValueId value) {
  SymDims dims;
  for (const SymDim size : graph[value].dims) dims.push_back(graph.arena().resolve(size));
  return dims;
}

SymCall call_of(const Node& node) {
  SymCall call;
  call.op = node.op;
  call.attributes = node.attributes.data();
  call.patches = node.patches;
  return call;
}

Access access_of(Graph& graph, NodeId node) { return Reader(graph, graph.node(node)).run(); }

}  // namespace tenon::codegen
