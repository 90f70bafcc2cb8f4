// Finds layer norms as exporters write them, and batch norms after convolutions.
#include <cstring>
#include <optional>

#include "core/graph/passes/match.h"
#include "core/graph/passes/passes.h"
#include "core/ops/attributes.h"
#include "core/ops/ops.h"

namespace tenon::graph {
namespace {

// mean, x - mean, its square, mean, + eps, sqrt, (x - mean) / root, and optionally * weight and + bias.
class LayerNorm {
 public:
  LayerNorm(Graph* graph, NodeId mean) : graph_(*graph), mean_(mean) {}

  void run() {
    if (!reduces_last_axis(mean_)) return;
    x_ = graph_.node(mean_).inputs[0];
    const NodeId sub = only_reader(graph_, result(graph_, mean_), OpId::sub);
    if (sub == kNoNode || graph_.node(sub).inputs != std::vector<ValueId>{x_, result(graph_, mean_)}) return;
    centred_ = result(graph_, sub);
    if (!find_root()) return;
    take_parameter(OpId::mul, &weight_);
    take_parameter(OpId::add, &bias_);
    replace();
  }

 private:
  bool reduces_last_axis(NodeId mean) const {
    const auto& reduce = graph_.node(mean).attributes_as<ReduceAttributes>();
    const Value& input = graph_[graph_.node(mean).inputs[0]];
    return input.dims.rank() > 0 && reduce.keep_dims != 0 && reduce.axes == 1u << (input.dims.rank() - 1);
  }

  // Finds the square of x - mean and the quotient, the two readers of x - mean.
  bool find_root() {
    const std::vector<Use>& uses = graph_[centred_].uses;
    if (graph_.is_output(centred_) || uses.size() < 2) return false;
    const NodeId a = uses.front().node, b = uses.back().node;
    for (const auto& [square, div] : {std::pair(a, b), std::pair(b, a)}) {
      if (uses.size() == (is(graph_, square, OpId::mul) ? 3u : 2u) && find_root(square, div)) return true;
    }
    return false;
  }

  bool is_square(NodeId id) const {
    const Node& node = graph_.node(id);
    if (is(graph_, id, OpId::square)) return true;
    if (is(graph_, id, OpId::mul)) return node.inputs == std::vector<ValueId>{centred_, centred_};
    return is(graph_, id, OpId::pow) && node.inputs[0] == centred_ && is_about(number(graph_, id, 1), 2.0);
  }

  bool find_root(NodeId square, NodeId div) {
    if (!is_square(square) || !is(graph_, div, OpId::div) || graph_.node(div).inputs[0] != centred_) return false;
    const NodeId variance = only_reader(graph_, result(graph_, square), OpId::mean);
    if (variance == kNoNode || !reduces_last_axis(variance)) return false;
    const NodeId add = only_reader(graph_, result(graph_, variance), OpId::add);
    if (add == kNoNode) return false;
    const std::optional<double> epsilon = other_number(graph_, add, result(graph_, variance));
    const NodeId root = only_reader(graph_, result(graph_, add), OpId::sqrt);
    if (!epsilon || root == kNoNode || only_reader(graph_, result(graph_, root)) != div) return false;
    epsilon_ = *epsilon;
    last_ = div;
    return true;
  }

  // Takes the next node if it multiplies by, or adds, a list as long as the axis.
  void take_parameter(OpId op, ValueId* parameter) {
    const NodeId next = only_reader(graph_, result(graph_, last_), op);
    if (next == kNoNode) return;
    const ValueId list = other_input(graph_, next, result(graph_, last_));
    const Value& x = graph_[x_];
    if (list == 0 || graph_[list].dims.rank() != 1 || graph_[list].dtype != x.dtype) return;
    if (!identical(graph_[list].dims[0], x.dims.back())) return;
    *parameter = list;
    last_ = next;
  }

  void replace() {
    AxisAttributes attributes{};
    attributes.axis = graph_[x_].dims.rank() - 1;
    Node norm;
    norm.op = &op_row(OpId::layer_norm);
    norm.inputs = {x_, weight_, bias_};
    norm.scalars = {Scalar(epsilon_)};
    norm.attributes.resize((sizeof attributes + 7) / 8);
    std::memcpy(norm.attributes.data(), &attributes, sizeof attributes);
    norm.precision = graph_.node(last_).precision;
    norm.label = graph_.node(last_).label;
    const NodeId made = graph_.insert(last_, std::move(norm));
    graph_.replace(result(graph_, last_), result(graph_, made));
  }

  Graph& graph_;
  NodeId mean_;
  ValueId x_ = 0, centred_ = 0, weight_ = 0, bias_ = 0;
  NodeId last_ = kNoNode;
  double epsilon_ = 0;
};

class BatchNorm {
 public:
  BatchNorm(Graph* graph, NodeId norm, FoldedConstants* folded) : graph_(*graph), norm_(norm), folded_(folded) {}

  void run() {
    const Node& norm = graph_.node(norm_);
    conv_ = maker(graph_, norm.inputs[0], OpId::conv);
    if (conv_ == kNoNode || only_reader(graph_, norm.inputs[0]) != norm_) return;
    const Node& conv = graph_.node(conv_);
    const bool bare = conv.epilogues.empty() && conv.precision == norm.precision;
    if (!bare || graph_[conv.inputs[1]].dtype != DType::f32) return;
    for (ValueId id : {conv.inputs[1], conv.inputs[2]}) {
      if (id != 0 && !graph_[id].constant.defined()) return;
    }
    TensorList from{graph_[conv.inputs[1]].constant};
    for (size_t i = 1; i < 5; ++i) {
      if (!graph_[norm.inputs[i]].constant.defined()) return;
      from.push_back(graph_[norm.inputs[i]].constant);
    }
    if (conv.inputs[2] != 0) from.push_back(graph_[conv.inputs[2]].constant);
    replace(from);
  }

 private:
  // The weight and bias of the convolution that includes the batch norm. `from`: weight, scale, shift, mean, variance,
  // and a bias.
  static TensorList folded(const TensorList& from, double epsilon) {
    const InterpreterScope scope(eager_interpreter());
    const Tensor factor = div(from[1], sqrt(add(from[4], Scalar(epsilon))));
    Dims column = Dims::filled(from[0].rank(), 1);
    column[0] = from[0].dims()[0];
    const Tensor shifted = from.size() > 5 ? sub(from[5], from[3]) : neg(from[3]);
    return {contiguous(mul(from[0], reshape(factor, column))), add(mul(shifted, factor), from[2])};
  }

  void replace(const TensorList& from) {
    const double epsilon = graph_.node(norm_).scalars[0].to_double();
    uint64_t key = 0;
    std::memcpy(&key, &epsilon, sizeof key);
    const auto make = [&] { return folded(from, epsilon); };
    const TensorList made = folded_ != nullptr ? folded_->get(key, from, make) : make();
    Node conv = graph_.node(conv_);
    conv.results.clear();
    conv.inputs = {conv.inputs[0], graph_.add_constant(made[0]), graph_.add_constant(made[1])};
    const NodeId both = graph_.insert(norm_, std::move(conv));
    graph_.replace(result(graph_, norm_), result(graph_, both));
  }

  Graph& graph_;
  NodeId norm_;
  FoldedConstants* folded_;
  NodeId conv_ = kNoNode;
};

}  // namespace

void find_layer_norms(Graph* graph, const PassOptions& options) {
  for (NodeId id = graph->first(); id != kNoNode; id = graph->next(id)) {
    if (is(*graph, id, OpId::mean)) LayerNorm(graph, id).run();
  }
  remove_dead_code(graph, options);
}

void fold_batch_norms(Graph* graph, const PassOptions& options) {
  for (NodeId id = graph->first(); id != kNoNode; id = graph->next(id)) {
    if (is(*graph, id, OpId::batch_norm)) BatchNorm(graph, id, options.folded).run();
  }
  remove_dead_code(graph, options);
}

}  // namespace tenon::graph
