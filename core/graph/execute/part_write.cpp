#include "core/graph/execute/part_write.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/graph/execute/steps.h"
#include "core/interpreter/segment_launch.h"
#include "core/ops/op_rows.h"

namespace tenon::graph {
namespace {

// The view op that selects the part which `op` writes; null if `op` does not write a part.
const OpInfo* view_of(const OpInfo* op) {
  if (op == &op_row(OpId::slice_scatter)) return &op_row(OpId::slice);
  if (op == &op_row(OpId::select_scatter)) return &op_row(OpId::select);
  return nullptr;
}

// Prepares the launch of `step`. Returns false if it needs several launches, workspace, or operands at other addresses.
bool prepare_copy(const Executable& program, DeviceState* device, Step* step) {
  const StepCall call(program, *step);
  Result<std::unique_ptr<Prepared>> made = prepare(call.call(), device, Reach::native_only);
  if (!made.ok()) return false;
  const Prepared& prepared = *made.value();
  const auto placed = [](const PreparedOperand& operand) { return operand.alignment > 1; };
  if (!fits_segment(prepared).ok() || !prepared.row_major_outputs.empty() || prepared.workspace_bytes != 0)
    return false;
  if (std::any_of(prepared.operands.begin(), prepared.operands.end(), placed)) return false;
  step->prepared = std::move(made.value());
  return true;
}

}  // namespace

void prepare_part_write(Executable* program, uint32_t seen) {
  if (program->steps.empty()) return;
  const Step& step = program->steps.back();
  const OpInfo* view = view_of(step.op);
  if (view == nullptr || step.part != nullptr) return;
  const Slot& result = program->values[step.outputs[0]];
  DeviceState* device = result.device;
  const auto elsewhere = [&](uint32_t id) { return program->values[id].device != device; };
  if (std::any_of(step.inputs.begin(), step.inputs.end(), elsewhere)) return;
  if (!is_contiguous(result.meta.dims, result.meta.strides)) return;
  Step sees = step;
  sees.op = view;
  sees.inputs = step.outputs;
  TensorImpl part;
  if (!view->view(StepCall(*program, sees).call(), &part).ok()) return;
  auto made = std::make_shared<PartWrite>();
  made->offset = static_cast<uint64_t>(dtype_bytes(result.meta.dtype, part.offset));
  made->whole = copy_step(*program, step.inputs[0], step);
  made->whole.outputs = step.outputs;
  made->part = copy_step(*program, step.inputs[1], step, result.meta.dtype);
  made->part.stated_order = true;
  made->part.dense_copy = false;
  if (seen == 0) seen = add_value(program, {});
  program->values[seen] = {{part.dtype, part.dims, part.strides}, device, Tensor()};
  made->part.outputs = {seen};
  if (!prepare_copy(*program, device, &made->whole) || !prepare_copy(*program, device, &made->part)) return;
  Step& writes = program->steps.back();
  writes.prepared = made->part.prepared;
  writes.part = std::move(made);
}

}  // namespace tenon::graph
