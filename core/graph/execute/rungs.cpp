#include "core/graph/execute/rungs.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "core/device/device_state.h"
#include "core/graph/execute/part_write.h"
#include "core/graph/execute/roots.h"
#include "core/graph/execute/steps.h"
#include "core/graph/recorder.h"
#include "core/interpreter/inference.h"
#include "core/interpreter/operands.h"
#include "core/interpreter/order.h"
#include "core/interpreter/segment_launch.h"
#include "core/ops/decompose/decompose.h"
#include "core/ops/op_rows.h"

namespace tenon::graph {
namespace {

DeviceState* device_of_step(const Executable& program, const Step& step) {
  for (uint32_t id : step.inputs) {
    if (id != 0) return program.values[id].device;
  }
  return step.device != nullptr ? step.device : program.values[step.outputs[0]].device;
}

class Rungs {
 public:
  Rungs(Executable* program, bool packed) : program_(*program), packed_(packed) {}

  void run() {
    std::vector<Step> steps;
    steps.reserve(program_.steps.size());
    program_.steps.swap(steps);
    for (Step& step : steps) take(std::move(step));
    for (uint32_t& output : program_.outputs) output = own(output);
  }

 private:
  void take(Step step) {
    if (step.fused != nullptr) return add_fused(std::move(step));
    if (!computes(step)) {
      add(std::move(step));
      return prepare_part_write(&program_);
    }
    const std::string device = device_spelling(step);
    const uint32_t label = step.label;
    try {
      prepare_step(std::move(step));
    } catch (const Error& error) {
      throw Error(with_label(error.status(), (*program_.labels)[label], device));
    }
  }

  std::string device_spelling(const Step& step) const { return device_of_step(program_, step)->opened->spelling; }

  // Kernels need row-major buffers, unless they are maps.
  void add_fused(Step step) {
    const std::vector<uint32_t> outputs = step.outputs;
    const std::optional<Dims> strides = channels_last_of(program_, step);
    for (uint32_t& input : step.inputs) {
      const TensorMeta& meta = program_.values[input].meta;
      if (!strides && !is_contiguous(meta.dims, meta.strides)) input = copy(input, contiguous_strides(meta.dims), step);
    }
    add_step(&program_, std::move(step));
    for (size_t i = 0; strides && i < outputs.size(); ++i) program_.values[outputs[i]].meta.strides = *strides;
  }

  // Adds a step that has no launch of its own.
  void add(Step step) {
    if (step.island == nullptr) return add_step(&program_, std::move(step));
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      program_.values[step.outputs[i]].meta = step.island_outputs[i];
    }
    program_.steps.push_back(std::move(step));
  }

  void prepare_step(Step step) {
    const std::shared_ptr<const Prepared> prepared = prepare_launch(program_, step, packed_);
    if (prepared->rung == Rung::decomposed) return decompose(step, *prepared);
    if (prepared->rung == Rung::native && prepared->primitive != nullptr) {
      if (replace_inputs(&step, *prepared)) return prepare_step(std::move(step));
      if (fits_segment(*prepared).ok()) {
        give(step, prepared->written());
        step.prepared = prepared;
        program_.steps.push_back(std::move(step));
        return;
      }
    }
    give(step, prepared->outputs);
    program_.steps.push_back(std::move(step));
  }

  void give(const Step& step, const std::vector<TensorMeta>& metas) {
    for (size_t i = 0; i < metas.size(); ++i) program_.values[step.outputs[i]].meta = metas[i];
  }

  // Adds copies for the inputs of `step` that `prepared` needs dense or better aligned. Returns false if there are
  // none.
  bool replace_inputs(Step* step, const Prepared& prepared) {
    uint32_t dense = prepared.dense_inputs, misaligned = 0;
    if (prepared.packed_input >= 0) dense &= ~(1u << prepared.packed_input);
    for (const PreparedOperand& operand : prepared.operands) {
      if (operand.alignment <= 1 || operand.input < 0 || operand.input == prepared.packed_input) continue;
      if (!aligned(step->inputs[static_cast<size_t>(operand.input)], operand.alignment))
        misaligned |= 1u << operand.input;
    }
    for (size_t i = 0; i < step->inputs.size(); ++i) {
      if (((dense | misaligned) >> i & 1) == 0) continue;
      const uint32_t from = step->inputs[i];
      const TensorMeta meta = program_.values[from].meta;
      Dims strides = meta.strides;
      if ((dense >> i & 1) != 0) {
        const StepCall call(program_, *step);
        strides = dense_strides(call.call(), meta.dims, prepared.written()[0]);
      }
      step->inputs[i] = copy(from, strides, *step);
    }
    return (dense | misaligned) != 0;
  }

  // True if `value` always starts at a multiple of `alignment` bytes.
  bool aligned(uint32_t value, int32_t alignment) {
    const Slot& slot = program_.values[value];
    if (slot.constant.defined()) return !misaligned(slot.constant, alignment);
    return dtype_bytes(slot.meta.dtype, root_of(value).offset) % alignment == 0;
  }

  RootView root_of(uint32_t value) {
    roots_.follow(program_);
    return roots_[value];
  }

  // Adds a dense copy of `from` with `strides` and returns it.
  uint32_t copy(uint32_t from, const Dims& strides, const Step& like) {
    Step step = copy_step(program_, from, like);
    const TensorMeta& meta = program_.values[from].meta;
    step.outputs = {add_value(&program_, {{meta.dtype, meta.dims, strides}, program_.values[from].device, Tensor()})};
    step.stated_order = true;
    const uint32_t made = step.outputs[0];
    take(std::move(step));
    return made;
  }

  void decompose(const Step& step, const Prepared& prepared) {
    std::vector<uint32_t> inputs;
    const Graph part = record_parts(step, prepared.device, &inputs);
    std::vector<uint32_t> of(part.value_count(), 0);  // by value of the part: its value in the executable
    for (size_t i = 0; i < inputs.size(); ++i) of[part.inputs()[i]] = inputs[i];
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const ValueId result = part.outputs()[i];
      if (part[result].producer != kNoNode && of[result] == 0) of[result] = step.outputs[i];
    }
    for (ValueId id = 1; id < part.value_count(); ++id) {
      if (of[id] != 0 || part[id].dtype == DType::none) continue;
      Slot slot{{}, part[id].device, part[id].constant};
      if (slot.constant.defined()) slot.meta = {slot.constant.dtype(), slot.constant.dims(), slot.constant.strides()};
      of[id] = add_value(&program_, std::move(slot));
    }
    for (NodeId id = part.first(); id != kNoNode; id = part.next(id)) take(part_of(part.node(id), of, step));
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      if (const uint32_t made = of[part.outputs()[i]]; made != step.outputs[i]) {
        Step same = copy_step(program_, made, step);
        same.outputs = {step.outputs[i]};
        take(std::move(same));
      }
    }
    program_.steps.back().ends.push_back({std::string(step.op->name), prepared.device->opened->spelling, "",
                                          Rung::decomposed, prepared.reason, 1, 0, ""});
  }

  // The decomposition of `step` as a graph, and the values that are its inputs.
  Graph record_parts(const Step& step, DeviceState* device, std::vector<uint32_t>* inputs) const {
    Recorder recorder{Device(device)};
    std::array<Tensor, EP_MAX_OPERANDS> tensors, made;
    std::array<const Tensor*, EP_MAX_OPERANDS> pointers{};
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      if (step.inputs[i] == 0) continue;
      const Slot& slot = program_.values[step.inputs[i]];
      tensors[i] = slot.constant;
      if (!tensors[i].defined()) {
        tensors[i] = recorder.input(slot.meta.dtype, slot.meta.dims);
        inputs->push_back(step.inputs[i]);
      }
      pointers[i] = &tensors[i];
    }
    const StepCall call(program_, step);
    OpCall inner = call.call();
    inner.inputs = {pointers.data(), step.inputs.size()};
    inner.outputs = {made.data(), step.outputs.size()};
    {
      const InterpreterScope scope(recorder);
      const PrecisionScope precision(step.precision);
      ops::decompose(inner);
    }
    return recorder.finish(inner.outputs);
  }

  static Step part_of(const Node& node, const std::vector<uint32_t>& of, const Step& whole) {
    Step step;
    step.op = node.op;
    for (ValueId id : node.inputs) step.inputs.push_back(of[id]);
    step.scalars = node.scalars;
    step.attributes = node.attributes;
    step.epilogues = node.epilogues;
    step.device = node.device;
    for (ValueId id : node.results) step.outputs.push_back(of[id]);
    step.precision = node.precision;
    step.label = whole.label;
    step.node = whole.node;
    step.derived = true;
    return step;
  }

  // The value that the program returns in place of `value`: row-major, and not in the memory of an input, a constant or
  // another result.
  uint32_t own(uint32_t value) {
    const Slot& slot = program_.values[value];
    const auto [root, offset] = root_of(value);
    const bool whole = offset == 0 && element_count(slot.meta.dims) == element_count(program_.values[root].meta.dims);
    const bool fresh = made_by_the_program(root) && std::find(given_.begin(), given_.end(), root) == given_.end();
    const bool row_major = is_contiguous(slot.meta.dims, slot.meta.strides);
    if (whole && fresh && row_major) {
      given_.push_back(root);
      return value;
    }
    const uint32_t made = copy(value, contiguous_strides(slot.meta.dims), Step());
    given_.push_back(made);
    return made;
  }

  bool made_by_the_program(uint32_t root) const {
    if (program_.values[root].constant.defined()) return false;
    for (const Step& step : program_.steps) {
      if (std::find(step.outputs.begin(), step.outputs.end(), root) == step.outputs.end()) continue;
      // `to` returns its input itself if that is already on the device.
      return step.op != &op_row(OpId::to) || program_.values[step.inputs[0]].device != program_.values[root].device;
    }
    return false;
  }

  Executable& program_;
  const bool packed_;
  Roots roots_;
  std::vector<uint32_t> given_;  // roots that are already results of the program
};

}  // namespace

std::shared_ptr<const Prepared> prepare_launch(const Executable& program, const Step& step, bool packed) {
  const StepCall call(program, step);
  uint32_t constants = 0;
  for (size_t i = 0; packed && i < step.inputs.size(); ++i) {
    constants |= uint32_t{program.values[step.inputs[i]].constant.defined()} << i;
  }
  std::shared_ptr<const Prepared> prepared;
  for (const Sizes sizes : {Sizes::open, Sizes::numbers}) {
    prepared =
        value_or_throw(tenon::prepare(call.call(), device_of_step(program, step), Reach::setting, sizes, constants));
    if (!prepared->limited) break;
  }
  return prepared;
}

void choose_rungs(Executable* program, bool packed) { Rungs(program, packed).run(); }

}  // namespace tenon::graph
