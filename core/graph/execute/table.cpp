#include "core/graph/execute/table.h"

#include <algorithm>

#include "core/device/device_state.h"
#include "core/interpreter/inference.h"
#include "core/interpreter/lower.h"
#include "primitives/text/format.h"

namespace tenon::graph {
namespace {

Status refuse(std::string_view why) { return Status(Code::unsupported, std::string(why)); }

bool is_output(const Lowering& lowering, uint32_t operand) { return lowering.sources[operand].output >= 0; }

// The number of elements from the first element of a value to the end of its last element.
int64_t reach_of(const TensorMeta& meta) {
  int64_t reach = 1;
  for (int32_t axis = 0; axis < meta.dims.rank(); ++axis) reach += (meta.dims[axis] - 1) * meta.strides[axis];
  return reach;
}

int64_t elements_of(const ep_operand_desc& operand) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < operand.rank; ++axis) count *= operand.dims[axis];
  return count;
}

// Waits until a constant's bytes are written, before the device gets them.
Status wait_for(const Tensor& constant) {
  try {
    wait_for_bytes(constant);
    return {};
  } catch (const Error& error) {
    return refuse("a constant could not be computed");
  }
}

// The reason why value `id` cannot be an operand of a node; ok if it can.
Status check_value(const Executable& program, const Roots& roots, DeviceState* device, uint32_t id) {
  const uint32_t root = roots.root(id);
  const Tensor& constant = program.values[root].constant;
  if (program.values[id].device != device) return refuse("an operand lies on another device");
  if (element_count(program.values[id].meta.dims) == 0) return refuse("an operand has no elements");
  return constant.defined() ? wait_for(constant) : Status();
}

Status check_values(const Executable& program, const Roots& roots, DeviceState* device, const Step& step) {
  for (const std::vector<uint32_t>* ids : {&step.inputs, &step.outputs}) {
    for (uint32_t id : *ids) {
      if (id != 0) TENON_RETURN_IF_ERROR(check_value(program, roots, device, id));
    }
  }
  return {};
}

// Finds the location of operand `i` of `node`.
Status locate_operand(const Executable& program, const Roots& roots, const Step& step, const Lowering& lowering,
                      uint32_t i, TableNode* node) {
  const Lowering::Source source = lowering.sources[i];
  if (source.input < 0 && source.output < 0) return {};
  const uint32_t id = source.output >= 0 ? step.outputs[static_cast<size_t>(source.output)]
                                         : step.inputs[static_cast<size_t>(source.input)];
  const RootView& view = roots[id];
  const TensorMeta& root = program.values[view.root].meta;
  const ep_operand_desc& operand = lowering.desc.operands[i];
  if (operand.dtype != static_cast<int32_t>(root.dtype)) return refuse("an operand has another dtype than its bytes");
  if (view.offset * dtype_info(root.dtype).bits % 8 != 0) return refuse("an operand begins inside a byte");
  if (is_output(lowering, i) && elements_of(operand) != reach_of(root)) {
    return refuse("an output does not fill its memory");
  }
  node->operands[i] = {view.root, static_cast<uint64_t>(dtype_bytes(root.dtype, view.offset))};
  return {};
}

void bake(const LoweredCall& lowered, ep_primitive_desc* desc) {
  for (uint32_t slot = 0; slot < lowered.scalar_count; ++slot) {
    if (lowered.lowering.scalar_dtypes[slot] == DType::none) continue;
    desc->baked_scalars |= 1u << slot;
    desc->scalars[slot] = lowered.scalars[slot];
  }
}

}  // namespace

Result<TableNode> make_node(const Executable& program, const Roots& roots, DeviceState* device, uint32_t number) {
  const Step& step = program.steps[number];
  TENON_RETURN_IF_ERROR(check_values(program, roots, device, step));
  if (step.inputs.size() + step.outputs.size() > EP_MAX_OPERANDS) return refuse("the op has too many operands");
  const StepCall call(program, step);
  std::vector<TensorMeta> outputs;
  for (uint32_t id : step.outputs) outputs.push_back(program.values[id].meta);
  LoweredCall lowered;
  TENON_RETURN_IF_ERROR(lower_call(call.call(), outputs, &lowered));
  TableNode node;
  node.step = number;
  node.desc = lowered.lowering.desc;
  if (const std::string why = settle_demand(&node.desc, device->opened->info.accuracy); !why.empty())
    return refuse(why);
  bake(lowered, &node.desc);
  for (uint32_t i = 0; i < node.desc.operand_count; ++i) {
    TENON_RETURN_IF_ERROR(locate_operand(program, roots, step, lowered.lowering, i, &node));
  }
  node.name = {step.op->named, lowered.operand_inputs, {}, (*program.labels)[step.label]};
  note_call(&call.call(), &node.name.inputs);
  return node;
}

uint32_t Table::add(const Executable& program, uint32_t root, uint64_t flags) {
  const Slot& value = program.values[root];
  const auto bytes = static_cast<uint64_t>(dtype_bytes(value.meta.dtype, reach_of(value.meta)));
  values_.push_back({flags, bytes, static_cast<int32_t>(value.meta.dtype), 0});
  buffers_.push_back((flags & EP_GRAPH_VALUE_CONSTANT) != 0 ? buffer_of(value.constant) : ep_buffer{nullptr, 0});
  numbers_[root] = static_cast<uint32_t>(values_.size());
  return numbers_[root];
}

void Table::number_values(const Executable& program, std::span<const TableNode* const> nodes,
                          const std::function<bool(uint32_t root)>& wanted) {
  std::vector<uint32_t> inner;
  std::vector<bool> seen(program.values.size(), false);
  const auto classify = [&](uint32_t root, bool written) {
    if (root == 0 || seen[root]) return;
    seen[root] = true;
    const bool constant = program.values[root].constant.defined();
    (constant || (written && !wanted(root)) ? inner : written ? outputs_ : inputs_).push_back(root);
  };
  for (const TableNode* node : nodes) {
    const Step& step = program.steps[node->step];
    for (uint32_t i = 0; i < node->desc.operand_count; ++i) {
      const uint32_t root = node->operands[i].root;
      classify(root, std::find(step.outputs.begin(), step.outputs.end(), root) != step.outputs.end());
    }
  }
  for (uint32_t root : inputs_) add(program, root, EP_GRAPH_VALUE_INPUT);
  for (uint32_t root : outputs_) add(program, root, EP_GRAPH_VALUE_OUTPUT);
  for (uint32_t root : inner) {
    const Tensor& constant = program.values[root].constant;
    if (constant.defined()) constants_.push_back(constant);
    add(program, root, constant.defined() ? EP_GRAPH_VALUE_CONSTANT : 0);
  }
}

Table::Table(const Executable& program, std::span<const TableNode* const> nodes,
             const std::function<bool(uint32_t root)>& wanted)
    : numbers_(program.values.size(), 0) {
  number_values(program, nodes, wanted);
  for (const TableNode* node : nodes) {
    ep_graph_node& made = nodes_.emplace_back();
    made = {};
    made.primitive = node->desc;
    for (uint32_t i = 0; i < node->desc.operand_count; ++i) {
      const TableNode::Operand& operand = node->operands[i];
      const bool scalar = operand.root == 0;
      made.operands[i] = {scalar ? EP_GRAPH_NO_VALUE : numbers_[operand.root] - 1, 0, operand.offset};
    }
  }
  desc_.struct_size = sizeof desc_;
  desc_.struct_type = EP_STRUCT_GRAPH_DESC;
  desc_.values = values_.data();
  desc_.constants = buffers_.data();
  desc_.nodes = nodes_.data();
  desc_.value_count = static_cast<uint32_t>(values_.size());
  desc_.node_count = static_cast<uint32_t>(nodes_.size());
}

}  // namespace tenon::graph
