// Finds attention as exporters write it: queries times keys, a scale, an optional mask, softmax, times values. Scales
// may precede the product; heads may share keys and values, in the form that the pass `groups` leaves. where(keep,
// scores, number) becomes an addition of where(keep, 0, number), if the number is so small that a sum with it equals
// the number. Minus infinity is excluded, because attention treats a row in which nothing is kept differently.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/graph/passes/match.h"
#include "core/graph/passes/passes.h"
#include "core/interpreter/launch_terms.h"
#include "core/ops/attributes.h"
#include "core/tensor/factory.h"

namespace tenon::graph {
namespace {

class Pattern {
 public:
  // `product` multiplies weights by values.
  Pattern(Graph* graph, NodeId product) : graph_(*graph), product_(product) {}

  void run() {
    const Node& product = graph_.node(product_);
    if (!product.epilogues.empty()) return;
    last_ = product_;
    value_ = product.inputs[1];
    if (!find_scores(product.inputs[0]) || !find_keys()) return;
    if (!shapes_fit() || !pays()) return;
    replace();
  }

 private:
  // Finds the input of softmax: the scores of queries, scaled, with an optional mask added.
  bool find_scores(ValueId weights) {
    if (const NodeId split = maker(graph_, weights, OpId::reshape); split != kNoNode) {
      weights = graph_.node(split).inputs[0];
      last_ = only_reader(graph_, result(graph_, product_), OpId::reshape);
      if (last_ == kNoNode) return false;
    }
    const NodeId softmax = maker(graph_, weights, OpId::softmax);
    if (softmax == kNoNode || only_reader(graph_, weights) == kNoNode) return false;
    const auto& attributes = graph_.node(softmax).attributes_as<SoftmaxAttributes>();
    if (graph_[weights].dims.rank() != 4 || attributes.axis != 3 || attributes.log != 0) return false;
    scores_ = graph_.node(softmax).inputs[0];
    take_mask();
    take_choice();
    take_scale(&scores_);
    return true;
  }

  // An addition to the scores that is not itself a product.
  void take_mask() {
    const NodeId add = maker(graph_, scores_, OpId::add);
    if (add == kNoNode || !graph_.node(add).epilogues.empty() || graph_.node(add).inputs.size() != 2) return;
    for (size_t i = 0; i < 2; ++i) {
      const ValueId scores = graph_.node(add).inputs[i], mask = graph_.node(add).inputs[1 - i];
      if (!leads_to_product(scores) || graph_[mask].dtype != graph_[scores].dtype) continue;
      if (!same_dims(graph_[scores].dims, graph_[scores_].dims)) continue;
      scores_ = scores;
      mask_ = mask;
      return;
    }
  }

  // A `where` between the scores and a number.
  void take_choice() {
    const NodeId choice = maker(graph_, scores_, OpId::where);
    if (choice == kNoNode || mask_ != 0 || !graph_.node(choice).epilogues.empty()) return;
    for (const size_t i : {size_t{1}, size_t{2}}) {
      const ValueId scores = graph_.node(choice).inputs[i];
      const std::optional<double> far = number(graph_, choice, 3 - i);
      if (scores == 0 || !far || !std::isfinite(*far) || *far > kFar || graph_[scores].dtype != DType::f32) continue;
      if (!leads_to_product(scores) || !same_dims(graph_[scores].dims, graph_[scores_].dims)) continue;
      scores_ = scores;
      choice_ = graph_.node(choice).inputs[0];
      far_ = *far;
      keeps_true_ = i == 1;
      return;
    }
  }

  // The mask that is added to the scores or selects them; 0 if there is none.
  ValueId mask() const { return mask_ != 0 ? mask_ : choice_; }

  bool leads_to_product(ValueId value) const {
    double scale = 1;
    value = without_scale(value, &scale);
    if (const NodeId join = maker(graph_, value, OpId::reshape); join != kNoNode) value = graph_.node(join).inputs[0];
    return maker(graph_, value, OpId::matmul) != kNoNode;
  }

  // The value that `value` is a multiple of; multiplies the factor into `scale`.
  ValueId without_scale(ValueId value, double* scale) const {
    for (;;) {
      const NodeId mul = maker(graph_, value, OpId::mul), div = maker(graph_, value, OpId::div);
      const NodeId node = mul != kNoNode ? mul : div;
      if (node == kNoNode || !graph_.node(node).epilogues.empty()) return value;
      size_t from = 0;
      std::optional<double> factor = number(graph_, node, 1);
      if (!factor && mul != kNoNode) {
        factor = number(graph_, node, 0);
        from = 1;
      }
      if (!factor || graph_.node(node).inputs.size() <= from) return value;
      const ValueId next = graph_.node(node).inputs[from];
      if (!same_dims(graph_[next].dims, graph_[value].dims) || graph_[next].dtype != graph_[value].dtype) return value;
      *scale = div != kNoNode ? *scale / *factor : *scale * *factor;
      value = next;
    }
  }
  void take_scale(ValueId* value) { *value = without_scale(*value, &scale_); }

  // Finds the product of the scores, its queries [B, H, M, W] and its keys, which it reads as [B, G, W, S].
  bool find_keys() {
    ValueId scores = scores_;
    const NodeId join = maker(graph_, scores, OpId::reshape);
    if ((join != kNoNode) != (last_ != product_)) return false;
    if (join != kNoNode) scores = graph_.node(join).inputs[0];
    const NodeId product = maker(graph_, scores, OpId::matmul);
    if (product == kNoNode || !graph_.node(product).epilogues.empty()) return false;
    query_ = graph_.node(product).inputs[0];
    turned_ = graph_.node(product).inputs[1];
    if (join != kNoNode) {
      const NodeId split = maker(graph_, query_, OpId::reshape);
      if (split == kNoNode) return false;
      query_ = graph_.node(split).inputs[0];
    }
    take_scale(&query_);
    take_scale(&turned_);
    return std::isfinite(scale_);
  }

  bool shapes_fit() const {
    const SymDims &query = graph_[query_].dims, &key = graph_[turned_].dims, &value = graph_[value_].dims;
    const SymDims &scores = graph_[scores_].dims, &out = graph_[result(graph_, last_)].dims;
    if (query.rank() != 4 || key.rank() != 4 || value.rank() != 4 || scores.rank() != 4 || out.rank() != 4)
      return false;
    const DType dtype = graph_[query_].dtype;
    if (!is_floating(dtype) || graph_[turned_].dtype != dtype || graph_[value_].dtype != dtype) return false;
    if (!query[1].is_number() || !key[1].is_number() || key[1].number() < 1) return false;
    if (query[1].number() % key[1].number() != 0) return false;
    // A size that may be 0 is not supported.
    for (const SymDim size : {query[3], key[3]}) {
      if (!graph_.arena().known({Relation::le, SymDim(1), size}).value_or(false)) return false;
    }
    if (mask() != 0 && !broadcasts(graph_[mask()].dims, scores)) return false;
    // The products would broadcast; attention does not.
    return identical(query[0], key[0]) && identical(key[0], value[0]) && identical(key[1], value[1]) &&
           identical(query[3], key[2]) && identical(key[3], value[2]) && identical(scores[0], query[0]) &&
           identical(scores[1], query[1]) && identical(scores[2], query[2]) && identical(scores[3], key[3]) &&
           identical(out[0], query[0]) && identical(out[1], query[1]) && identical(out[2], query[2]) &&
           identical(out[3], value[3]);
  }

  static bool broadcasts(const SymDims& mask, const SymDims& scores) {
    if (mask.rank() > scores.rank()) return false;
    for (int32_t axis = 0; axis < mask.rank(); ++axis) {
      const SymDim size = mask[axis];
      if (!identical(size, SymDim(1)) && !identical(size, scores[scores.rank() - mask.rank() + axis])) return false;
    }
    return true;
  }

  // True where one op is not slower than its parts, by measurement.
  bool pays() const {
    const bool grouped = last_ != product_;
    if (grouped && graph_.arena().hint(graph_[query_].dims[2]).value_or(0) < kLeastQueries) return false;
    return runs_whole();
  }

  // A tensor without data with the size hints of a value; undefined if there are none.
  Tensor at_hints(ValueId id) const { return at_hints(id, graph_[id].dtype); }
  Tensor at_hints(ValueId id, DType dtype) const {
    Dims dims;
    for (const SymDim size : graph_[id].dims) {
      const std::optional<int64_t> hint = graph_.arena().hint(size);
      if (!hint) return {};
      dims.push_back(*hint);
    }
    return make_meta(graph_[id].device, {dtype, dims, contiguous_strides(dims)});
  }

  // True if the device has a primitive for the op itself, or if it cannot be asked.
  bool runs_whole() const {
    const bool masks = mask() != 0;
    Tensor inputs[] = {at_hints(query_), at_hints(turned_), at_hints(value_),
                       masks ? at_hints(mask(), graph_[scores_].dtype) : Tensor()};
    if (!inputs[0].defined() || !inputs[1].defined() || !inputs[2].defined()) return true;
    if (masks && !inputs[3].defined()) return true;
    Dims keys = inputs[1].dims();
    std::swap(keys[2], keys[3]);
    inputs[1] = make_meta(graph_[turned_].device, {inputs[1].dtype(), keys, contiguous_strides(keys)});
    const Tensor* pointers[] = {&inputs[0], &inputs[1], &inputs[2], masks ? &inputs[3] : nullptr, nullptr};
    const Scalar scalars[] = {Scalar(scale_), Scalar(0.0)};
    Tensor output;
    OpCall call;
    call.op = &op_row(OpId::attention);
    call.inputs = pointers;
    call.scalars = scalars;
    call.attributes = &kWhole;
    call.outputs = {&output, 1};
    call.precision = graph_.node(product_).precision;
    const Result<LaunchTerms> terms = launch_terms(call, graph_[query_].device);
    return terms.ok() && !is_plain(terms.value().implementation);
  }

  ValueId put(Node node) {
    node.precision = graph_.node(product_).precision;
    node.label = graph_.node(product_).label;
    return result(graph_, graph_.insert(last_, std::move(node)));
  }

  // The keys as [B, G, S, W].
  ValueId keys() {
    std::vector<int64_t> axes{0, 1, 3, 2};
    ValueId from = turned_;
    if (const NodeId turn = maker(graph_, turned_, OpId::permute); turn != kNoNode) {
      const auto own = graph_.node(turn).attributes_as<PermuteAttributes>().axes.span();
      axes = {own[0], own[1], own[3], own[2]};
      from = graph_.node(turn).inputs[0];
      if (axes == std::vector<int64_t>{0, 1, 2, 3}) return from;
    }
    PermuteAttributes attributes{};
    attributes.axes = DimsAttribute::of(axes);
    Node node;
    node.op = &op_row(OpId::permute);
    node.inputs = {from};
    node.attributes = words_of(attributes);
    return put(std::move(node));
  }

  ValueId put(OpId op, std::vector<ValueId> inputs, std::vector<Scalar> scalars, std::vector<uint64_t> attributes) {
    Node node;
    node.op = &op_row(op);
    node.inputs = std::move(inputs);
    node.scalars = std::move(scalars);
    node.attributes = std::move(attributes);
    return put(std::move(node));
  }
  // 0 where the scores are kept, and the number elsewhere.
  ValueId chosen() {
    const ValueId dropped = keeps_true_ ? put(OpId::logical_not, {choice_}, {}, {}) : choice_;
    CastAttributes attributes{};
    attributes.dtype = DType::f32;
    const ValueId ones = put(OpId::cast, {dropped}, {}, words_of(attributes));
    return put(OpId::mul, {ones, 0}, {Scalar(0.0), Scalar(far_)}, {});
  }

  void replace() {
    if (choice_ != 0) mask_ = chosen();
    Node node;
    node.op = &op_row(OpId::attention);
    node.inputs = {query_, keys(), value_, mask_, 0};
    node.scalars = {Scalar(scale_), Scalar(0.0)};
    node.attributes.resize((sizeof kWhole + 7) / 8);
    std::memcpy(node.attributes.data(), &kWhole, sizeof kWhole);
    graph_.replace(result(graph_, last_), put(std::move(node)));
  }

  static constexpr AttentionAttributes kWhole{{EP_ATTENTION_START, 0, -1, -1}};  // every query reads every key
  static constexpr int64_t kLeastQueries = 4;                                    // for heads that share keys and values

  static constexpr double kFar = -1e30;  // adding a score to such a number does not change it

  Graph& graph_;
  NodeId product_;
  NodeId last_ = kNoNode;  // computes the result: the product, or the reshape that splits its rows into heads again
  ValueId query_ = 0, turned_ = 0, value_ = 0, scores_ = 0, mask_ = 0;
  // the condition of where(choice, scores, far), or, if keeps_true_ is false, of where(choice, far, scores)
  ValueId choice_ = 0;
  double far_ = 0;
  bool keeps_true_ = true;
  double scale_ = 1;
};

}  // namespace

void find_attention(Graph* graph, const PassOptions& options) {
  for (NodeId id = graph->first(); id != kNoNode; id = graph->next(id)) {
    if (is(*graph, id, OpId::matmul)) Pattern(graph, id).run();
  }
  remove_dead_code(graph, options);
}

}  // namespace tenon::graph
