#include "core/graph/execute/steps.h"

#include <cstring>
#include <utility>

#include "core/graph/execute/regions.h"
#include "core/graph/fusion.h"
#include "core/interpreter/inference.h"
#include "core/interpreter/order.h"
#include "core/ops/attributes.h"
#include "core/ops/op_rows.h"
#include "core/tensor/factory.h"

namespace tenon::graph {
namespace {

// Makes a view of a constant a constant. Returns false if the input is not a constant, or if only a copy has the view's
// elements.
bool fold_view(Executable* program, const Step& step) {
  const Tensor constant = program->values[step.inputs[0]].constant;
  if (!constant.defined()) return false;
  Tensor view = begin_view(*constant.impl());
  const Tensor* input = &constant;
  OpCall call;
  call.op = step.op;
  call.inputs = {&input, 1};
  call.attributes = step.attributes.data();
  if (!step.op->view(call, view.impl()).ok()) return false;
  Slot& slot = program->values[step.outputs[0]];
  slot.device = view.impl()->device;
  slot.meta = {view.dtype(), view.dims(), view.strides()};
  slot.constant = std::move(view);
  return true;
}

// After a pass or a layout change the strides may differ from the recorded ones and may not allow the view.
void add_view(Executable* program, Step step) {
  if (fold_view(program, step)) return;
  TensorImpl view;
  const auto look = [&] { return step.op->view(StepCall(*program, step).call(), &view); };
  if (!look().ok()) {
    Step copy = copy_step(*program, step.inputs[0], step);
    copy.outputs = {add_value(program, {})};
    step.inputs[0] = copy.outputs[0];
    add_step(program, std::move(copy));
    throw_if_error(look());
  }
  Slot& slot = program->values[step.outputs[0]];
  slot.device = program->values[step.inputs[0]].device;
  slot.meta = {view.dtype, view.dims, view.strides};
  program->steps.push_back(std::move(step));
}

void add_regions(Executable* program, Step step) {
  for (size_t i = 0; i < step.outputs.size(); ++i) {
    Slot& slot = program->values[step.outputs[i]];
    slot.device = step.regions->devices[i];
    slot.meta = step.regions->results[i];
  }
  program->steps.push_back(std::move(step));
}

DeviceState* device_of_results(const Executable& program, const Step& step) {
  if (step.device != nullptr) return step.device;
  for (uint32_t id : step.inputs) {
    if (id != 0) return program.values[id].device;
  }
  return program.values[step.outputs[0]].device;
}

}  // namespace

bool computes(const Step& step) {
  return step.op != nullptr && (step.op->form == OpForm::elementwise || step.op->form == OpForm::kernel);
}

std::optional<Dims> channels_last_of(const Executable& program, const Step& step) {
  if (!step.fused->is_map) return std::nullopt;
  const Dims& dims = step.regions->results[0].dims;
  if (dims.rank() < 3 || dims.rank() > 5) return std::nullopt;
  const Dims strides = channels_last_strides(dims);
  for (const TensorMeta& result : step.regions->results) {
    if (!(result.dims == dims)) return std::nullopt;
  }
  for (uint32_t input : step.inputs) {
    const TensorMeta& meta = program.values[input].meta;
    if (element_count(meta.dims) == 1) continue;
    if (!(meta.dims == dims) || !same_layout(dims, meta.strides, strides)) return std::nullopt;
  }
  return strides;
}

uint32_t add_value(Executable* program, Slot slot) {
  program->values.push_back(std::move(slot));
  return static_cast<uint32_t>(program->values.size() - 1);
}

Step copy_step(const Executable& program, uint32_t from, const Step& like, DType dtype) {
  CastAttributes attributes{};
  attributes.dtype = dtype != DType::none ? dtype : program.values[from].meta.dtype;
  attributes.row_major = 1;
  Step copy;
  copy.op = &op_row(OpId::cast);
  copy.inputs = {from};
  copy.attributes.resize((sizeof attributes + 7) / 8);
  std::memcpy(copy.attributes.data(), &attributes, sizeof attributes);
  copy.precision = like.precision;
  copy.label = like.label;
  copy.node = like.node;
  copy.derived = true;
  copy.dense_copy = true;
  return copy;
}

void add_step(Executable* program, Step step) {
  if (is_view(step)) return add_view(program, std::move(step));
  if (step.regions != nullptr) return add_regions(program, std::move(step));
  const StepCall call(*program, step);
  std::vector<TensorMeta> metas;
  throw_if_error(infer_outputs(call.call(), &metas));
  DeviceState* device = device_of_results(*program, step);
  for (size_t i = 0; i < metas.size(); ++i) {
    Slot& slot = program->values[step.outputs[i]];
    slot.device = device;
    slot.meta = std::move(metas[i]);
  }
  program->steps.push_back(std::move(step));
}

StepCall::StepCall(const Executable& executable, const Step& step)
    : inputs_(step.inputs.size()), outputs_(step.outputs.size()) {
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const Slot& slot = executable.values[step.inputs[i]];
    if (step.inputs[i] != 0) inputs_[i] = make_meta(slot.device, slot.meta);
    pointers_.push_back(step.inputs[i] == 0 ? nullptr : &inputs_[i]);
  }
  call_.op = step.op;
  call_.inputs = pointers_;
  call_.scalars = step.scalars;
  call_.attributes = step.attributes.data();
  call_.device = step.device;
  if (step.stated_order) {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Slot& slot = executable.values[step.outputs[i]];
      outputs_[i] = make_meta(slot.device, slot.meta);
    }
  }
  call_.outputs = outputs_;
  call_.precision = step.precision;
  call_.epilogues = step.epilogues;
}

}  // namespace tenon::graph
