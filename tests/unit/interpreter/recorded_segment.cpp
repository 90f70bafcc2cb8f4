#include "tests/unit/interpreter/recorded_segment.h"

#include <utility>

#include "core/interpreter/inference.h"
#include "core/tensor/factory.h"
#include "core/vm/engine.h"
#include "primitives/text/format.h"

namespace tenon::testing {

// Eager, which notes each launch.
class SegmentRecorder final : public Interpreter {
 public:
  explicit SegmentRecorder(RecordedSegment* into) : into_(*into) {}
  std::string name() const override { return "the recorder of segments"; }
  bool host_value_known(const Tensor& tensor) override { return eager_interpreter().host_value_known(tensor); }
  void apply(const OpCall& call) override {
    const InterpreterScope below(eager_interpreter());
    if (call.op->form == OpForm::view) return eager_interpreter().apply(call);
    into_.record(call);
  }

 private:
  RecordedSegment& into_;
};

int32_t RecordedSegment::value_of(const Tensor& tensor) {
  Storage* storage = value_or_throw(tensor.impl()->storage.plain(Use::read));
  const auto [at, fresh] = by_storage_.try_emplace(storage, static_cast<int32_t>(values_.size()));
  if (fresh) values_.push_back({tensor, 0, 0, -1, -1, false});
  return at->second;
}

RecordedSegment::Operand RecordedSegment::location(const Tensor& tensor, bool writes) {
  if (!tensor.defined()) return {};
  const int32_t index = value_of(tensor);
  Value& value = values_[static_cast<size_t>(index)];
  const auto step = static_cast<uint32_t>(steps_.size());
  if (writes && value.input < 0 && !value.made && value.last == 0) {
    value.made = true;
    value.first = step;
  }
  value.last = step;
  return {index, static_cast<uint64_t>(dtype_bytes(tensor.impl()->dtype, tensor.impl()->offset))};
}

void RecordedSegment::record(const OpCall& call) {
  Step step;
  step.op = call.op;
  device_ = value_or_throw(device_of(call));
  step.prepared = value_or_throw(prepare(call, device_, Reach::native_only));
  for (const Tensor* input : call.inputs) step.inputs.push_back(input != nullptr ? *input : Tensor());
  step.scalars.assign(call.scalars.begin(), call.scalars.end());
  for (const Tensor& input : step.inputs) step.input_addresses.push_back(location(input, false));
  eager_interpreter().apply(call);
  for (const Tensor& output : call.outputs) step.output_addresses.push_back(location(output, true));
  steps_.push_back(std::move(step));
}

RecordedSegment::RecordedSegment(const Function& function, const TensorList& inputs) : input_count_(inputs.size()) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    values_[static_cast<size_t>(value_of(inputs[i]))].input = static_cast<int32_t>(i);
  }
  steps_.emplace_back();  // so that step 0 is before the first launch
  SegmentRecorder recorder(this);
  const InterpreterScope scope(recorder);
  const TensorList outputs = function(inputs);
  build(inputs, outputs);
}

std::vector<plan::Value> RecordedSegment::planned_values() {
  std::vector<plan::Value> planned;
  plan_of_.assign(values_.size(), -1);
  for (size_t i = 0; i < values_.size(); ++i) {
    const Value& value = values_[i];
    if (!value.made || value.output >= 0) continue;
    plan_of_[i] = static_cast<int64_t>(planned.size());
    planned.push_back({value.keeps.impl()->storage.bytes(), 64, value.first, value.last, plan::kNone});
  }
  workspace_of_.assign(steps_.size(), -1);
  for (uint32_t s = 1; s < steps_.size(); ++s) {
    if (steps_[s].prepared->workspace_bytes == 0) continue;
    workspace_of_[s] = static_cast<int64_t>(planned.size());
    planned.push_back({steps_[s].prepared->workspace_bytes, 256, s, s, plan::kNone});
  }
  return planned;
}

// Bindings: inputs, outputs, blocks of the plan.
vm::SegmentAddress RecordedSegment::segment_address(const Operand& operand) const {
  if (operand.value < 0) return {};
  const auto index = static_cast<size_t>(operand.value);
  const Value& value = values_[index];
  if (value.input >= 0) return vm::SegmentAddress::binding(static_cast<uint32_t>(value.input), operand.offset);
  if (value.output >= 0) {
    return vm::SegmentAddress::binding(static_cast<uint32_t>(input_count_) + static_cast<uint32_t>(value.output),
                                       operand.offset);
  }
  if (plan_of_[index] < 0) {
    return vm::SegmentAddress::constant(static_cast<uint32_t>(constant_of_[index]), operand.offset);
  }
  const plan::Location& location = plan_.locations[static_cast<size_t>(plan_of_[index])];
  return vm::SegmentAddress::binding(static_cast<uint32_t>(input_count_ + output_metas_.size()) + location.block,
                                     location.offset + operand.offset);
}

void RecordedSegment::build(const TensorList& inputs, const TensorList& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    Value& value = values_[static_cast<size_t>(value_of(outputs[i]))];
    if (!value.made || value.output >= 0) throw Error(Code::unsupported, "An output is no value of its own.");
    value.output = static_cast<int32_t>(i);
    output_metas_.push_back({outputs[i].dtype(), outputs[i].dims(), outputs[i].strides()});
  }
  plan_ = value_or_throw(plan::plan_memory(planned_values(), {}));
  std::vector<StorageOwner> constants;
  constant_of_.assign(values_.size(), -1);
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].made || values_[i].input >= 0) continue;
    constant_of_[i] = static_cast<int64_t>(constants.size());
    Storage* storage = value_or_throw(values_[i].keeps.impl()->storage.plain(Use::read));
    storage->retain_tensor();
    constants.emplace_back(storage);
  }
  vm::SegmentBuilder builder(device_, static_cast<uint32_t>(inputs.size() + outputs.size() + plan_.blocks.size()),
                             std::make_shared<vm::Constants>(std::move(constants)));
  for (size_t s = 1; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    std::vector<vm::SegmentAddress> from, to;
    for (const Operand& operand : step.input_addresses) from.push_back(segment_address(operand));
    for (const Operand& operand : step.output_addresses) to.push_back(segment_address(operand));
    vm::SegmentAddress workspace;
    if (workspace_of_[s] >= 0) {
      const plan::Location& location = plan_.locations[static_cast<size_t>(workspace_of_[s])];
      workspace = vm::SegmentAddress::binding(static_cast<uint32_t>(inputs.size() + outputs.size()) + location.block,
                                              location.offset);
    }
    std::vector<const Tensor*> pointers;
    for (const Tensor& input : step.inputs) pointers.push_back(input.defined() ? &input : nullptr);
    OpCall call;
    call.op = step.op;
    call.inputs = pointers;
    call.scalars = step.scalars;
    throw_if_error(add_launch(&builder, call, *step.prepared, {from, to, workspace},
                              fmt::format("node {} (/{})", s, step.op->name)));
  }
  segment_ = builder.finish();
}

TensorList RecordedSegment::made_outputs() const {
  TensorList outputs;
  for (const TensorMeta& meta : output_metas_) {
    outputs.push_back(value_or_throw(make_tensor(device_, meta.dtype, meta.dims, meta.strides)));
  }
  return outputs;
}

Status RecordedSegment::run_into(std::span<const Tensor> inputs, std::span<const Tensor> outputs) const {
  std::vector<vm::Operand> bindings;
  for (const Tensor& input : inputs) bindings.push_back({input.impl()->storage, 0, false, false});
  for (const Tensor& output : outputs) bindings.push_back({output.impl()->storage, 0, true, true});
  std::vector<StorageOwner> blocks;
  for (const uint64_t bytes : plan_.blocks) {
    TENON_ASSIGN_OR_RETURN(Storage * block, Storage::make_aligned(device_, bytes));
    blocks.emplace_back(block);
    bindings.push_back({block, 0, true, true});
  }
  return vm::run({segment_.get(), bindings, vm::current_stream(device_)});
}

Status RecordedSegment::run(std::span<const Tensor> inputs, TensorList* outputs) const {
  *outputs = made_outputs();
  return run_into(inputs, *outputs);
}

}  // namespace tenon::testing
