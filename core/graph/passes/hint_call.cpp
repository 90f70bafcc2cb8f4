#include "core/graph/passes/hint_call.h"

#include <utility>

#include "core/interpreter/inference.h"

namespace tenon::graph {

std::optional<Dims> hint_dims(const Graph& graph, const Value& value) {
  Dims dims;
  for (SymDim dim : value.dims) {
    const std::optional<int64_t> hint = dim.is_number() ? dim.number() : graph.arena().hint(dim);
    if (!hint) return std::nullopt;
    dims.push_back(*hint);
  }
  return dims;
}

OpCall call_of(const Node& node) {
  OpCall call;
  call.op = node.op;
  call.scalars = node.scalars;
  call.attributes = node.attributes.data();
  call.device = node.device;
  call.precision = node.precision;
  call.epilogues = node.epilogues;
  return call;
}

HintCall::HintCall(const Node& node, std::vector<Tensor> inputs)
    : inputs_(std::move(inputs)), outputs_(node.results.size()), call_(call_of(node)) {
  for (const Tensor& input : inputs_) pointers_.push_back(input.defined() ? &input : nullptr);
  call_.inputs = pointers_;
  call_.outputs = outputs_;
}

std::optional<Dims> HintCall::strides(size_t i) const {
  if (call_.op->form == OpForm::view) {
    TensorImpl view;
    return call_.op->view(call_, &view).ok() ? std::optional(view.strides) : std::nullopt;
  }
  std::vector<TensorMeta> metas;
  return infer_outputs(call_, &metas).ok() ? std::optional(metas[i].strides) : std::nullopt;
}

std::optional<LaunchTerms> HintCall::terms(DeviceState* device) const {
  Result<LaunchTerms> answer = launch_terms(call_, device);
  return answer.ok() ? std::optional(std::move(answer.value())) : std::nullopt;
}

}  // namespace tenon::graph
