#include <algorithm>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/border.h"
#include "sdk/onnx/importer/model_impl.h"
#include "sdk/onnx/onnx.h"

namespace tenon::onnx {

struct Walk::State {
  std::shared_ptr<Model::Impl> model;
  std::vector<Value> values;
  size_t done = 0;            // number of nodes done
  std::vector<int32_t> last;  // value numbers of the tensors in the last result

  const ParsedModel& parsed() const { return model->parsed; }
  void run(const Node& node, bool known, NodeResult* result);
  void drop_after_last();
  bool next(NodeResult* result);
  void replace(size_t i, const Tensor& tensor);
};

void Walk::State::run(const Node& node, bool known, NodeResult* result) {
  *result = NodeResult();
  result->node = node.position;
  result->name = node.name;
  result->op_type = node.op_type;
  result->known = known;
  if (!known) {
    ExecutionScope scope;
    apply_node(parsed(), node, &values);
    for (ExecutionEntry& entry : scope.take())
      result->executions.push_back(model->execution(static_cast<int32_t>(done), std::move(entry)));
  }
  last.clear();
  for (int32_t value : node.outputs) {
    if (value < 0) continue;
    const Value& made = values[static_cast<size_t>(value)];
    if (!made.is_tensor()) continue;
    last.push_back(value);
    result->values.push_back(parsed().names[static_cast<size_t>(value)]);
    result->tensors.push_back(made.tensor());
  }
}

void Walk::State::drop_after_last() {
  if (done == 0) return;
  const auto last_node = static_cast<int32_t>(done - 1);
  const auto drop = [&](int32_t value) {
    if (value >= 0 && parsed().drop_after[static_cast<size_t>(value)] == last_node)
      values[static_cast<size_t>(value)] = Value();
  };
  const Node& node = parsed().nodes[done - 1];
  std::for_each(node.captures.begin(), node.captures.end(), drop);
  std::for_each(node.inputs.begin(), node.inputs.end(), drop);
  std::for_each(node.outputs.begin(), node.outputs.end(), drop);
}

Walk::Walk(const Model& model, const Inputs& inputs) : state_(std::make_unique<State>()) {
  at_border([&] {
    const auto with_defaults = model.impl().with_defaults_of(inputs);
    state_->model = with_defaults != nullptr ? with_defaults : model.impl_;
    const TensorList bound = state_->model->bind(inputs);
    state_->values = initial_values(state_->model->parsed, ValueList(bound.begin(), bound.end()));
  });
}

Walk::Walk(Walk&&) noexcept = default;
Walk::~Walk() = default;

bool Walk::next(NodeResult* result) {
  return at_border([&] { return state_->next(result); });
}

void Walk::replace(size_t i, const Tensor& tensor) {
  at_border([&] { state_->replace(i, tensor); });
}

bool Walk::State::next(NodeResult* result) {
  drop_after_last();
  if (done == parsed().nodes.size()) return false;
  const Node& node = parsed().nodes[done];
  run(node, is_settled(parsed(), node), result);
  ++done;
  return true;
}

void Walk::State::replace(size_t i, const Tensor& tensor) {
  if (i >= last.size()) {
    throw Error(Code::invalid_argument,
                fmt::format("The node has {} values; there is no value {} to replace.", last.size(), i));
  }
  const Tensor value = values[static_cast<size_t>(last[i])].tensor();
  if (tensor.dtype() != value.dtype() || tensor.dims() != value.dims()) {
    throw Error(Code::invalid_argument,
                fmt::format("A value of type {}{} cannot be replaced by one of type {}{}.", dtype_name(value.dtype()),
                            value.dims(), dtype_name(tensor.dtype()), tensor.dims()));
  }
  values[static_cast<size_t>(last[i])] = tensor.to(value.device());
}

}  // namespace tenon::onnx
