#include "core/graph/recorder.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "core/device/device_state.h"
#include "core/graph/liveness.h"
#include "core/interpreter/inference.h"
#include "core/interpreter/prepared.h"
#include "core/tensor/factory.h"
#include "core/tensor/recording.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

// A result of known inputs is computed while recording if it has at most this many elements, or fewer than its inputs.
constexpr int64_t kSmall = int64_t{1} << 16;
// A result of a factory, which has no inputs, only if it has at most this many elements: a large one would waste
// memory.
constexpr int64_t kSmallFactory = 1024;

bool is_value(const Tensor& tensor) { return tensor.impl()->storage == nullptr; }

int64_t input_elements(const OpCall& call) {
  int64_t elements = 0;
  for (const Tensor* input : call.inputs) {
    if (input != nullptr) elements += input->elements();
  }
  return elements;
}

}  // namespace

Recorder::Recorder(Device device, Options options)
    : device_(device.state()), options_(std::move(options)), known_(current_interpreter()) {
  begin();
}

Recorder::~Recorder() { recording_->finished.store(true, std::memory_order_relaxed); }

void Recorder::begin() {
  static std::atomic<uint64_t> count{0};
  recording_ = std::make_shared<Recording>();
  recording_->name = fmt::format("recording {}", ++count);
  if (!options_.name.empty()) recording_->name += fmt::format(" ({})", options_.name);
  graph_ = Graph();
  graph_.values.emplace_back();
  graph_.labels.add({});
}

std::string Recorder::name() const { return recording_->name; }

Tensor Recorder::new_value(const TensorMeta& meta, DeviceState* device, uint32_t* id) {
  *id = static_cast<uint32_t>(graph_.values.size());
  graph_.values.push_back({meta, Tensor()});
  Tensor tensor = make_meta(device, meta);
  tensor.impl()->recorded = new RecordedValue{recording_, *id};
  return tensor;
}

Tensor Recorder::input(const TensorMeta& meta) {
  uint32_t id = 0;
  Tensor tensor = new_value({meta.dtype, meta.dims, contiguous_strides(meta.dims)}, device_, &id);
  graph_.inputs.push_back(id);
  return tensor;
}

void Recorder::label(std::string text) { graph_.labels.add(std::move(text)); }

bool Recorder::host_value_known(const Tensor& tensor) { return !is_value(tensor); }

void Recorder::check_value(std::string_view op, const char* role, size_t index, const Tensor& tensor) const {
  if (!is_value(tensor)) return;
  const RecordedValue* value = tensor.impl()->recorded;
  if (value != nullptr && value->recording == recording_) return;
  throw Error(Code::invalid_argument, fmt::format("{}: {} {} of shape {} is {}, and cannot be used under {}.", op, role,
                                                  index, tensor.dims(), origin_of(tensor), recording_->name));
}

void Recorder::check_values(const OpCall& call) const {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (call.inputs[i] != nullptr) check_value(call.op->name, "argument", i, *call.inputs[i]);
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (call.outputs[i].defined()) check_value(call.op->name, "output", i, call.outputs[i]);
  }
}

uint32_t Recorder::value_of(const Tensor& tensor) {
  if (is_value(tensor)) return tensor.impl()->recorded->id;
  const auto id = static_cast<uint32_t>(graph_.values.size());
  graph_.values.push_back({{tensor.dtype(), tensor.dims(), tensor.strides()}, tensor});
  return id;
}

void Recorder::infer(const OpCall& call, std::vector<TensorMeta>* outputs) const {
  if (call.op->form == OpForm::view) {
    TensorImpl view;
    throw_if_error(call.op->view(call, &view));
    outputs->assign(1, {view.dtype, view.dims, view.strides});
  } else if (options_.check_support && call.op->form != OpForm::builtin) {
    DeviceState* device = value_or_throw(device_of(call));
    *outputs = std::move(value_or_throw(prepare(call, device, Reach::setting))->outputs);
  } else {
    throw_if_error(infer_outputs(call, outputs));
  }
}

bool Recorder::compute_now(const OpCall& call, std::span<const TensorMeta> outputs) const {
  const auto unknown = [](const Tensor* tensor) { return tensor != nullptr && tensor->defined() && is_value(*tensor); };
  if (std::any_of(call.inputs.begin(), call.inputs.end(), unknown)) return false;
  for (const Tensor& output : call.outputs) {
    if (unknown(&output)) return false;
  }
  if (call.op->form == OpForm::view) return true;
  int64_t made = 0;
  for (const TensorMeta& meta : outputs) made += element_count(meta.dims);
  const bool factory =
      std::all_of(call.inputs.begin(), call.inputs.end(), [](const Tensor* input) { return input == nullptr; });
  return made <= (factory ? kSmallFactory : std::max(kSmall, input_elements(call)));
}

void Recorder::record(const OpCall& call, std::span<const TensorMeta> outputs) {
  DeviceState* device = call.device == nullptr ? value_or_throw(device_of(call)) : call.device;
  Step step;
  step.op = call.op;
  step.precision = call.precision;
  step.device = call.inputs.empty() || call.device != nullptr ? device : nullptr;
  step.label = static_cast<uint32_t>(graph_.labels.size() - 1);
  for (const Tensor* input : call.inputs) step.inputs.push_back(input == nullptr ? 0 : value_of(*input));
  step.scalars.assign(call.scalars.begin(), call.scalars.end());
  if (call.op->attribute_bytes != 0) {
    step.attributes.resize((call.op->attribute_bytes + 7) / 8);
    std::memcpy(step.attributes.data(), call.attributes, call.op->attribute_bytes);
  }
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    uint32_t id = 0;
    if (call.outputs[i].defined()) {
      if (!is_value(call.outputs[i])) {
        throw Error(Code::internal,
                    fmt::format("{}: a constant of a recorded program cannot be written in place.", call.op->name));
      }
      step.in_place = true;
      id = call.outputs[i].impl()->recorded->id;
    } else {
      call.outputs[i] = new_value(outputs[i], device, &id);
    }
    step.outputs.push_back(id);
  }
  graph_.steps.push_back(std::move(step));
}

void Recorder::apply(const OpCall& call) {
  if (call.op->form == OpForm::composite) return compose(call, *this);
  check_values(call);
  std::vector<TensorMeta> outputs;
  infer(call, &outputs);
  if (compute_now(call, outputs)) {
    InterpreterScope scope(known_);
    known_.apply(call);
    return;
  }
  record(call, outputs);
}

Graph Recorder::finish(std::span<const Tensor> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    check_value("finish", "output", i, outputs[i]);
    graph_.outputs.push_back(value_of(outputs[i]));
  }
  drop_unneeded_steps(&graph_);
  find_last_uses(&graph_);
  Graph done = std::move(graph_);
  recording_->finished.store(true, std::memory_order_relaxed);
  begin();
  return done;
}

}  // namespace tenon::graph
