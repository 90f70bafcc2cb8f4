// Turns the ops that follow a product into epilogues (ep_api.h), which the product applies before it stores. The device
// is asked first: an epilogue that would make the product slower stays an op.
#include <algorithm>
#include <cmath>

#include "core/device/device_state.h"
#include "core/graph/passes/hint_call.h"
#include "core/graph/passes/match.h"
#include "core/graph/passes/passes.h"
#include "core/interpreter/order.h"
#include "core/ops/rules/epilogue.h"
#include "core/tensor/factory.h"
#include "primitives/table/table.h"

namespace tenon::graph {
namespace {

class Product {
 public:
  // `kernels`: ops that no product takes are fused into kernels.
  Product(Graph* graph, NodeId id, bool kernels) : graph_(*graph), id_(id), kernels_(kernels) {}

  // Takes as many of the following ops as possible.
  void run() {
    if (!may_have_epilogues()) return;
    while (take_next()) continue;
  }

 private:
  const Node& node() const { return graph_.node(id_); }
  const Value& made() const { return graph_[result(graph_, id_)]; }

  // The product of a vector has another rank than its primitive's result, so it takes no epilogues.
  bool may_have_epilogues() const {
    return is_floating(made().dtype) && graph_[node().inputs[0]].dims.rank() > 1 &&
           graph_[node().inputs[1]].dims.rank() > 1;
  }

  bool take_next() {
    const NodeId next = only_reader(graph_, result(graph_, id_));
    if (next == kNoNode || graph_.node(next).precision != node().precision) return false;
    const Value& after = graph_[result(graph_, next)];
    if (after.dtype != made().dtype || !same_dims(after.dims, made().dims)) return false;
    Node taken = node();
    taken.results.clear();
    if (!take(next, &taken) || is_slower(taken)) return false;
    taken.label = node().label;
    const NodeId both = graph_.insert(next, std::move(taken));
    graph_.replace(result(graph_, next), result(graph_, both));
    graph_.erase(next);
    graph_.erase(id_);
    id_ = both;
    return true;
  }

  // How well a device serves a product.
  enum class Service : uint8_t { refused, plain, fast };

  // True if the device serves `taken` worse than the product as it is, row-major or channels-last. False if sizes are
  // not known.
  bool is_slower(const Node& taken) const {
    for (const bool channels_last : {false, true}) {
      const std::optional<Service> before = service(node(), channels_last);
      const std::optional<Service> after = service(taken, channels_last);
      if (before && after && *after < *before) return true;
    }
    return false;
  }

  std::optional<Service> service(const Node& of, bool channels_last) const {
    std::vector<Tensor> inputs(of.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (of.inputs[i] == 0) continue;
      const Value& value = graph_[of.inputs[i]];
      const std::optional<Dims> dims = hint_dims(graph_, value);
      if (!dims || value.device == nullptr) return std::nullopt;
      const bool has_order = dims->rank() >= 3 && dims->rank() <= 5;
      if (channels_last && i == 0 && (!has_order || !is(graph_, id_, OpId::conv))) return std::nullopt;
      const bool weight = i == 1;
      const Dims strides = value.constant.defined()                ? value.constant.strides()
                           : channels_last && has_order && !weight ? channels_last_strides(*dims)
                                                                   : contiguous_strides(*dims);
      inputs[i] = make_meta(value.device, {value.dtype, *dims, strides});
    }
    Node asked = of;
    asked.results = node().results;
    const HintCall call(asked, std::move(inputs));
    const std::optional<LaunchTerms> terms = call.terms(device_of(graph_, node()));
    return !terms ? Service::refused : is_plain(terms->implementation) ? Service::plain : Service::fast;
  }

  bool take(NodeId next, Node* taken) const {
    const Node& op = graph_.node(next);
    if (is(graph_, next, OpId::clamp)) return take_clamp(next, taken);
    if (op.op->form != OpForm::elementwise) return false;
    if (op.op->kind == EP_PRIMITIVE_unary) {
      const table::ScalarRow& row = *table::unary_row(op.op->scalar_op);
      if (row.result != table::ResultType::SAME) return false;
      std::vector<Scalar> parameters(static_cast<size_t>(row.parameters));
      for (size_t i = 0; i < parameters.size() && i < op.scalars.size(); ++i) parameters[i] = op.scalars[i];
      return add_epilogue(op.op, -1, parameters, taken);
    }
    if (is(graph_, next, OpId::mul) || is(graph_, next, OpId::div)) return take_scale(next, taken);
    return is(graph_, next, OpId::add) && take_add(next, taken);
  }

  // A number that multiplies or divides, such as the scale of attention scores. A division becomes a product.
  bool take_scale(NodeId next, Node* taken) const {
    if (!is(graph_, id_, OpId::matmul)) return false;
    const bool product = is(graph_, next, OpId::mul);
    const std::optional<double> given =
        product ? other_number(graph_, next, result(graph_, id_)) : number(graph_, next, 1);
    if (!given || (!product && *given == 0)) return false;
    const double factor = product ? *given : 1 / *given;
    return std::isfinite(factor) && add_epilogue(&op_row(OpId::mul), -1, {Scalar(factor)}, taken);
  }

  bool take_add(NodeId next, Node* taken) const {
    const ValueId other = other_input(graph_, next, result(graph_, id_));
    if (other == 0 || graph_[other].dtype != made().dtype) return false;
    if (!same_dims(graph_[other].dims, made().dims) && !is_bias(other)) return false;
    if (kernels_ && joins_kernel(next, other)) return false;
    if (taken->inputs.size() + 2 > EP_MAX_OPERANDS) return false;
    taken->inputs.push_back(other);
    return add_epilogue(graph_.node(next).op, static_cast<int16_t>(taken->inputs.size() - 1), {}, taken);
  }

  // True if a kernel that adds `other` would also compute it, so that it is never stored: `other` is a map that only
  // `sum` reads. A product would have to read it from memory.
  bool joins_kernel(NodeId sum, ValueId other) const {
    const NodeId maker = graph_[other].producer;
    return maker != kNoNode && graph_.node(maker).op->form == OpForm::elementwise &&
           same_dims(graph_[other].dims, made().dims) && only_reader(graph_, other) == sum;
  }

  // One number per column of a matrix product that has no bias yet.
  bool is_bias(ValueId other) const {
    const SymDims& dims = graph_[other].dims;
    return is(graph_, id_, OpId::matmul) && node().epilogues.empty() && dims.rank() == 1 &&
           identical(dims[0], made().dims.back());
  }

  bool take_clamp(NodeId next, Node* taken) const {
    if (graph_.node(next).inputs[0] != result(graph_, id_)) return false;
    const std::optional<double> low = number(graph_, next, 1), high = number(graph_, next, 2);
    if (!low || !high || taken->epilogues.size() + 2 > EP_MAX_EPILOGUES) return false;
    Node both = *taken;
    if (!add_epilogue(&op_row(OpId::maximum), -1, {Scalar(*low)}, &both)) return false;
    if (!add_epilogue(&op_row(OpId::minimum), -1, {Scalar(*high)}, &both)) return false;
    *taken = std::move(both);
    return true;
  }

  static bool add_epilogue(const OpInfo* op, int16_t input, const std::vector<Scalar>& scalars, Node* taken) {
    const size_t slot = std::max<size_t>(taken->scalars.size(), ops::kEpilogueSlot);
    if (taken->epilogues.size() == EP_MAX_EPILOGUES || slot + scalars.size() > EP_MAX_SCALARS) return false;
    if (!scalars.empty()) {
      taken->scalars.resize(slot);
      taken->scalars.insert(taken->scalars.end(), scalars.begin(), scalars.end());
    }
    taken->epilogues.push_back({op, input, static_cast<int16_t>(scalars.empty() ? 0 : slot)});
    return true;
  }

  Graph& graph_;
  NodeId id_;
  const bool kernels_;
};

}  // namespace

void take_epilogues(Graph* graph, const PassOptions& options) {
  std::vector<NodeId> products;
  for (NodeId id = graph->first(); id != kNoNode; id = graph->next(id)) {
    if (is(*graph, id, OpId::matmul) || is(*graph, id, OpId::conv)) products.push_back(id);
  }
  for (NodeId id : products) Product(graph, id, fuses(options)).run();
}

}  // namespace tenon::graph
