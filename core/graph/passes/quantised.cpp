// Rewrites quantised models as exporters write them: integers are dequantised, an op computes on floats, and its result
// is quantised. Here products and sums compute on the integers, and ops that only move elements, or take the greatest,
// do not dequantise.
#include <algorithm>
#include <optional>

#include "core/graph/passes/match.h"
#include "core/graph/passes/passes.h"
#include "core/ops/attributes.h"

namespace tenon::graph {
namespace {

// Integers that represent reals: (value - zero point) * scale. A scale of rank 1 varies along `axis`.
struct Numbers {
  ValueId value = 0, scale = 0, zero = 0;
  int64_t axis = -1;
};

class Quantised {
 public:
  explicit Quantised(Graph* graph) : graph_(*graph) {}

  void run() {
    // Visits results that are quantised again first, so that their products give integers and not floats.
    for (NodeId id = graph_.first(); id != kNoNode;) {
      const NodeId after = graph_.next(id);
      if (is(graph_, id, OpId::quantize_linear)) take_result(id);
      id = after;
    }
    for (NodeId id = graph_.first(); id != kNoNode;) {
      const NodeId after = graph_.next(id);
      const Node& node = graph_.node(id);
      if (is(graph_, id, OpId::matmul) || is(graph_, id, OpId::conv)) {
        const DType dtype = graph_[result(graph_, id)].dtype;
        if (node.epilogues.empty()) product(id, id, {}, dtype);
      }
      id = after;
    }
  }

 private:
  const Node& node(NodeId id) const { return graph_.node(id); }
  bool is_byte(ValueId id) const { return id != 0 && (graph_[id].dtype == DType::i8 || graph_[id].dtype == DType::u8); }
  bool is_one(ValueId id) const { return id == 0 || graph_[id].dims.rank() == 0; }

  // The 8-bit input of the dequantize_linear that makes `real`.
  std::optional<Numbers> numbers_of(ValueId real) const {
    const NodeId id = maker(graph_, real, OpId::dequantize_linear);
    if (id == kNoNode) return std::nullopt;
    const auto& at = node(id).attributes_as<QuantisationAttributes>();
    const Numbers numbers{node(id).inputs[0], node(id).inputs[1], node(id).inputs[2], at.axis};
    if (!is_byte(numbers.value) || graph_[numbers.scale].dims.rank() > 1 || at.block != 0) return std::nullopt;
    return numbers;
  }

  // The result of the quantize_linear `id`, if it has one scale and 8 bits.
  std::optional<Numbers> result_of(NodeId id) const {
    const Numbers made{result(graph_, id), node(id).inputs[1], node(id).inputs[2]};
    return is_byte(made.value) && is_one(made.scale) && is_one(made.zero) ? std::optional(made) : std::nullopt;
  }

  bool equal(ValueId a, ValueId b) const {
    if (a == b) return true;
    if (a == 0 || b == 0) return false;
    const Tensor &left = graph_[a].constant, &right = graph_[b].constant;
    if (!left.defined() || !right.defined() || left.dtype() != right.dtype()) return false;
    if (left.elements() != 1 || right.elements() != 1) return false;
    return left.item().to_double() == right.item().to_double();
  }
  bool same(const Numbers& a, const Numbers& b) const {
    return equal(a.scale, b.scale) && equal(a.zero, b.zero) && graph_[a.value].dtype == graph_[b.value].dtype;
  }

  // True if the least integer represents 0, so that negative values become 0 without a relu.
  bool cuts_at_zero(const Numbers& made) const {
    const int64_t least = graph_[made.value].dtype == DType::i8 ? -128 : 0;
    if (made.zero == 0) return least == 0;
    const Tensor& zero = graph_[made.zero].constant;
    return zero.defined() && zero.elements() == 1 && zero.item().to_double() == static_cast<double>(least);
  }

  // `real` before a relu that the quantisation `made` includes, if nothing else reads the values in between.
  ValueId before_relu(ValueId real, const Numbers& made) const {
    const NodeId relu = maker(graph_, real, OpId::relu);
    return relu != kNoNode && cuts_at_zero(made) && graph_[real].uses.size() == 1 ? node(relu).inputs[0] : real;
  }

  bool read_once(ValueId value) const { return graph_[value].uses.size() == 1 && !graph_.is_output(value); }

  void take_result(NodeId id) {
    const std::optional<Numbers> made = result_of(id);
    if (!made || !read_once(node(id).inputs[0])) return;
    const ValueId real = before_relu(node(id).inputs[0], *made);
    const NodeId from = graph_[real].producer;
    if (from == kNoNode || !read_once(real) || !node(from).epilogues.empty()) return;
    const bool relu = real != node(id).inputs[0];
    const DType dtype = graph_[made->value].dtype;
    if (is(graph_, from, OpId::matmul) || is(graph_, from, OpId::conv)) {
      product(id, from, *made, dtype);
    } else if (is(graph_, from, OpId::add) || is(graph_, from, OpId::mul)) {
      if (!with_bias(id, from, *made, dtype)) binary(id, from, *made);
    } else if (!relu) {
      moved(id, from, *made);
    }
  }

  // Inserts `op` before the node `id`, whose result it replaces.
  ValueId put(NodeId before, OpId op, std::vector<ValueId> inputs, std::vector<uint64_t> attributes) {
    Node made;
    made.op = &op_row(op);
    made.inputs = std::move(inputs);
    made.attributes = std::move(attributes);
    made.precision = node(before).precision;
    made.label = node(before).label;
    return result(graph_, graph_.insert(before, std::move(made)));
  }

  // The right factor of a product, whose scales may vary along its columns or results. A matrix may be transposed.
  std::optional<Numbers> right_factor(NodeId product, NodeId before) {
    const ValueId real = node(product).inputs[1];
    const bool conv = is(graph_, product, OpId::conv);
    if (std::optional<Numbers> numbers = numbers_of(real)) {
      const int64_t axis = conv ? 0 : graph_[real].dims.rank() - 1;
      return is_one(numbers->scale) || numbers->axis == axis ? numbers : std::nullopt;
    }
    const NodeId turn = conv ? kNoNode : maker(graph_, real, OpId::permute);
    if (turn == kNoNode) return std::nullopt;
    std::optional<Numbers> numbers = numbers_of(node(turn).inputs[0]);
    if (!numbers) return std::nullopt;
    const auto axes = node(turn).attributes_as<PermuteAttributes>().axes.span();
    if (!is_one(numbers->scale) && numbers->axis != axes.back()) return std::nullopt;
    numbers->value = put(before, OpId::permute, {numbers->value}, node(turn).attributes);
    return numbers;
  }

  // Replaces the result of `id` by an integer product of the inputs of `from`, quantised as `made` or as floats of
  // `dtype`.
  bool product(NodeId id, NodeId from, const Numbers& made, DType dtype, ValueId bias = 0) {
    const bool conv = is(graph_, from, OpId::conv);
    const std::optional<Numbers> left = numbers_of(node(from).inputs[0]);
    if (!left || !is_one(left->scale) || !is_real(dtype, made)) return false;
    if (!conv && (graph_[left->value].dims.rank() < 2 || graph_[node(from).inputs[1]].dims.rank() < 2)) return false;
    if (!node(from).patches.empty()) return false;
    const std::optional<Numbers> right = right_factor(from, id);
    if (!right) return false;
    if (conv) bias = node(from).inputs[2];
    if (bias != 0 && graph_[bias].dtype != DType::f32) return false;
    const std::vector<ValueId> inputs{left->value, left->scale, left->zero, right->value, right->scale,
                                      right->zero, bias,        made.scale, made.zero};
    ValueId done = 0;
    if (conv) {
      QuantizedConvolutionAttributes at{};
      at.window = node(from).attributes_as<ConvolutionAttributes>().window;
      at.dtype = dtype;
      done = put(id, OpId::quantized_conv, inputs, words_of(at));
    } else {
      done = put(id, OpId::quantized_matmul, inputs, words_of(QuantizedProductAttributes{dtype, 0}));
    }
    graph_.replace(result(graph_, id), done);
    return true;
  }

  static bool is_real(DType dtype, const Numbers& made) { return made.scale != 0 || dtype == DType::f32; }

  // A product to which a list is added, one number per column.
  bool with_bias(NodeId id, NodeId add, const Numbers& made, DType dtype) {
    if (!is(graph_, add, OpId::add) || node(add).inputs.size() != 2) return false;
    for (size_t i : {0, 1}) {
      const ValueId product_value = node(add).inputs[i], bias = node(add).inputs[1 - i];
      const NodeId from = maker(graph_, product_value, OpId::matmul);
      if (from == kNoNode || bias == 0 || graph_[bias].dims.rank() != 1 || !read_once(product_value)) continue;
      if (!node(from).epilogues.empty() || !identical(graph_[bias].dims[0], graph_[product_value].dims.back()))
        continue;
      return product(id, from, made, dtype, bias);
    }
    return false;
  }

  void binary(NodeId id, NodeId from, const Numbers& made) {
    if (node(from).inputs.size() != 2) return;
    const std::optional<Numbers> left = numbers_of(node(from).inputs[0]), right = numbers_of(node(from).inputs[1]);
    if (!left || !right || !is_one(left->scale) || !is_one(right->scale)) return;
    const DType dtype = graph_[made.value].dtype;
    if (graph_[left->value].dtype != dtype || graph_[right->value].dtype != dtype) return;
    const bool add = is(graph_, from, OpId::add);
    const QuantizedBinaryAttributes at{dtype, add ? EP_BINARY_add : EP_BINARY_mul};
    graph_.replace(result(graph_, id), put(id, add ? OpId::quantized_add : OpId::quantized_mul,
                                           {left->value, left->scale, left->zero, right->value, right->scale,
                                            right->zero, made.scale, made.zero},
                                           words_of(at)));
  }

  // An op that moves elements, or takes the greatest, gives integers of the same scale.
  void moved(NodeId id, NodeId from, const Numbers& made) {
    constexpr OpId known[] = {OpId::reshape, OpId::permute,  OpId::squeeze,      OpId::unsqueeze,
                              OpId::slice,   OpId::max_pool, OpId::gather_slices};
    const bool moves = std::any_of(std::begin(known), std::end(known), [&](OpId op) { return is(graph_, from, op); });
    if (!moves || node(from).results.size() != 1) return;
    const std::optional<Numbers> given = numbers_of(node(from).inputs[0]);
    if (!given || !is_one(given->scale) || !same(*given, made)) return;
    Node same_op = node(from);
    same_op.inputs[0] = given->value;
    same_op.results.clear();
    graph_.replace(made.value, result(graph_, graph_.insert(id, std::move(same_op))));
  }

  Graph& graph_;
};

}  // namespace

void compute_on_numbers(Graph* graph, const PassOptions& options) {
  Quantised(graph).run();
  remove_dead_code(graph, options);
}

}  // namespace tenon::graph
