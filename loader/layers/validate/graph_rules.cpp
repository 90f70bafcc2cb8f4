// Whole graphs: the table that the host gives, the device's answers, and launches.
#include <algorithm>

#include "loader/layers/validate/graph_arguments.h"
#include "loader/layers/validate/rules.h"
#include "primitives/descriptor/descriptor.h"
#include "primitives/dtype/dtype.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"

namespace tenon::loader::validate {
namespace {

constexpr uint64_t block_alignment = 256;  // required alignment of workspace
constexpr uint64_t known_flags = EP_GRAPH_VALUE_INPUT | EP_GRAPH_VALUE_OUTPUT | EP_GRAPH_VALUE_CONSTANT;
constexpr int32_t first_test_kind = 0x10000;
constexpr uint64_t longest_reason = 4096;

int64_t reach_of(const ep_operand_desc& operand) {
  int64_t last = 0;
  for (int32_t axis = 0; axis < operand.rank; ++axis) last += (operand.dims[axis] - 1) * operand.strides[axis];
  return last + 1;
}

int64_t count_of(const ep_operand_desc& operand) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < operand.rank; ++axis) count *= operand.dims[axis];
  return count;
}

uint64_t bytes_of(int32_t dtype, int64_t count) {
  return static_cast<uint64_t>(dtype_bytes(static_cast<DType>(dtype), count));
}

// Checks one table by rule G03.
class TableCheck {
 public:
  TableCheck(Call& call, const Argument<const ep_graph_desc*>& given)
      : call_(call), given_(given), desc_(*given.desc), used_(desc_.value_count), written_(desc_.value_count) {}

  void run() {
    for (uint32_t i = 0; i < desc_.value_count && !call_.refused(); ++i) check_value(i);
    for (uint32_t i = 0; i < desc_.node_count && !call_.refused(); ++i) check_node(i);
    for (uint32_t i = 0; i < desc_.value_count && !call_.refused(); ++i) {
      if (!used_[i]) return refuse(fmt::format("value {} is an operand of no node", i));
    }
  }

 private:
  void refuse(const std::string& what) { call_.refuse("G03", what); }

  void check_value(uint32_t index) {
    const ep_graph_value& value = desc_.values[index];
    const bool constant = value.flags == EP_GRAPH_VALUE_CONSTANT;
    if ((value.flags & ~known_flags) != 0 || (value.flags & (value.flags - 1)) != 0) {
      return refuse(fmt::format("value {} has the flags {}; one at most is possible", index, value.flags));
    }
    if (value.bytes == 0) return refuse(fmt::format("value {} has no bytes", index));
    if (constant != (given_.constants[index] != nullptr)) {
      return refuse(fmt::format("value {} {}", index,
                                constant ? "is a constant without memory" : "is not a constant and has memory"));
    }
    if (constant) {
      check_range(call_, *given_.constants[index], desc_.constants[index].offset, value.bytes,
                  fmt::format("constant {}", index));
    }
  }

  void check_node(uint32_t index) {
    const ep_primitive_desc& primitive = desc_.nodes[index].primitive;
    if (primitive.operand_count > EP_MAX_OPERANDS) {
      return refuse(fmt::format("node {} has {} operands", index, primitive.operand_count));
    }
    if (primitive.kind < first_test_kind) {
      const Status status = descriptor::check_descriptor(primitive);
      if (status.code() == Code::unsupported) return leave_out(index);
      if (!status.ok()) return refuse(fmt::format("node {} is not valid: {}", index, status.message()));
    }
    if (descriptor::has_opaque(primitive)) {
      return call_.refuse("Y06", fmt::format("node {} has an opaque operand", index));
    }
    if (descriptor::has_any(primitive)) return refuse(fmt::format("node {} holds EP_ANY", index));
    for (const bool output : {false, true}) {
      for (uint32_t i = 0; i < primitive.operand_count && !call_.refused(); ++i) {
        if (is_output(primitive, i) == output) check_operand(index, i, output);
      }
    }
  }

  // The device must not take the node (rule G01), and nobody knows which operands it writes.
  void leave_out(uint32_t node) {
    for (uint32_t i = 0; i < desc_.nodes[node].primitive.operand_count; ++i) {
      const uint32_t value = desc_.nodes[node].operands[i].value;
      if (value < desc_.value_count) used_[value] = written_[value] = true;
    }
  }

  static bool is_output(const ep_primitive_desc& primitive, uint32_t operand) {
    if (primitive.kind >= first_test_kind) return operand == 0;
    return table::is_output(primitive.kind, primitive.operands[operand].role);
  }

  void check_scalar(uint32_t node, uint32_t index) {
    const ep_primitive_desc& primitive = desc_.nodes[node].primitive;
    const auto slot = static_cast<uint32_t>(primitive.operands[index].role - EP_ROLE_SRC);
    if (desc_.nodes[node].operands[index].value != EP_GRAPH_NO_VALUE) {
      return refuse(fmt::format("operand {} of node {} is a scalar and has a value", index, node));
    }
    if (slot < EP_MAX_SCALARS && (primitive.baked_scalars >> slot & 1) == 0) {
      refuse(fmt::format("launch scalar {} of node {} is not baked", slot, node));
    }
  }

  void check_operand(uint32_t node, uint32_t index, bool output) {
    const ep_operand_desc& operand = desc_.nodes[node].primitive.operands[index];
    if ((operand.flags & EP_OPERAND_FLAG_SCALAR) != 0) return check_scalar(node, index);
    const ep_graph_operand& place = desc_.nodes[node].operands[index];
    if (place.value >= desc_.value_count) {
      return refuse(
          fmt::format("operand {} of node {} is value {} of {}", index, node, place.value, desc_.value_count));
    }
    const ep_graph_value& value = desc_.values[place.value];
    if (value.dtype != operand.dtype) {
      return refuse(
          fmt::format("operand {} of node {} has dtype {}, its value {}", index, node, operand.dtype, value.dtype));
    }
    const uint64_t size = std::max<uint64_t>(1, bytes_of(operand.dtype, 1));
    const uint64_t bytes = bytes_of(operand.dtype, reach_of(operand));
    if (place.offset % size != 0 || place.offset > value.bytes || bytes > value.bytes - place.offset) {
      return refuse(fmt::format("operand {} of node {} is {} bytes at offset {} of a value of {} bytes", index, node,
                                bytes, place.offset, value.bytes));
    }
    used_[place.value] = true;
    output ? check_write(node, index, place) : check_read(node, index, place);
  }

  void check_read(uint32_t node, uint32_t index, const ep_graph_operand& place) {
    const bool given = (desc_.values[place.value].flags & (EP_GRAPH_VALUE_INPUT | EP_GRAPH_VALUE_CONSTANT)) != 0;
    if (given || written_[place.value]) return;
    refuse(fmt::format("operand {} of node {} reads value {} before a node has written it", index, node, place.value));
  }

  void check_write(uint32_t node, uint32_t index, const ep_graph_operand& place) {
    const ep_graph_value& value = desc_.values[place.value];
    const ep_operand_desc& operand = desc_.nodes[node].primitive.operands[index];
    if ((value.flags & (EP_GRAPH_VALUE_INPUT | EP_GRAPH_VALUE_CONSTANT)) != 0 || written_[place.value]) {
      return refuse(fmt::format("operand {} of node {} writes value {}, which {}", index, node, place.value,
                                written_[place.value] ? "was written before" : "the host gives"));
    }
    if (bytes_of(operand.dtype, count_of(operand)) != value.bytes) {
      return refuse(fmt::format("operand {} of node {} does not fill value {}", index, node, place.value));
    }
    written_[place.value] = true;
  }

  Call& call_;
  const Argument<const ep_graph_desc*>& given_;
  const ep_graph_desc& desc_;
  std::vector<bool> used_, written_;
};

void check_answer(Call& call, const ep_graph_desc& desc, uint32_t node, const ep_graph_answer& answer) {
  const ep_string reason = answer.reason;
  if (answer.reserved != 0 || reason.size > longest_reason || (reason.size != 0 && reason.data == nullptr)) {
    return call.blame("R01", fmt::format("its answer for node {} is not filled in", node));
  }
  const ep_primitive_desc& primitive = desc.nodes[node].primitive;
  if (answer.island == 0 || primitive.kind >= first_test_kind) return;
  const Status known = descriptor::check_descriptor(primitive);
  if (!known.ok()) {
    call.blame("P02", fmt::format("it takes node {}, which this host does not know: {}", node, known.message()));
  }
}

// The entries of `memories` that still exist. A host that violates G04 has freed some.
std::vector<Memory*> living(std::vector<Memory*> memories) {
  std::erase_if(memories, [](Memory* memory) { return Objects::instance().find(memory) == nullptr; });
  return memories;
}

// The operand of a launch for one value of the graph.
struct Border {
  uint32_t value;
  Memory* memory;
  uint64_t offset, bytes;
  bool output;
};

std::vector<Border> borders_of(const Graph& graph, const Argument<const ep_graph_launch*>& launch) {
  std::vector<Border> borders;
  for (uint32_t i = 0; i < graph.values.size(); ++i) {
    const ep_graph_value& value = graph.values[i];
    if ((value.flags & (EP_GRAPH_VALUE_INPUT | EP_GRAPH_VALUE_OUTPUT)) == 0) continue;
    const size_t at = borders.size();
    if (at >= launch.operands.size()) return borders;
    borders.push_back(
        {i, launch.memories[at], launch.operands[at].offset, value.bytes, value.flags == EP_GRAPH_VALUE_OUTPUT});
  }
  return borders;
}

bool overlap(const Border& a, const Border& b) {
  return a.memory == b.memory && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

void check_borders(Call& call, const Graph& graph, const std::vector<Border>& borders) {
  for (const Border& one : borders) {
    const std::string name = fmt::format("value {}", one.value);
    if (one.memory == nullptr) return call.refuse("G05", fmt::format("{} has no memory", name));
    check_range(call, *one.memory, one.offset, one.bytes, name);
    if (!one.output) check_plain(call, one.memory, one.offset, name.c_str());
    if (one.memory->image) call.refuse("Y06", fmt::format("{} is an image", name));
    if (one.offset % std::max<uint64_t>(1, bytes_of(graph.values[one.value].dtype, 1)) != 0) {
      call.refuse("G05", fmt::format("{} begins at offset {}, between two elements", name, one.offset));
    }
  }
  for (const Border& one : borders) {
    for (const Border& other : borders) {
      if (&one == &other || !one.output || !overlap(one, other)) continue;
      return call.refuse("G05", fmt::format("value {}, an output, overlaps value {}", one.value, other.value));
    }
  }
}

void check_workspace(Call& call, const Graph& graph, const Argument<const ep_graph_launch*>& launch) {
  const uint64_t bytes = graph.info.workspace_bytes;
  if (bytes == 0) return;
  if (launch.workspace == nullptr) {
    return call.refuse("G05", fmt::format("the workspace of {} bytes was not given", bytes));
  }
  check_range(call, *launch.workspace, launch.inner.workspace.offset, bytes, "workspace");
  const uint64_t address = reinterpret_cast<uintptr_t>(launch.workspace->host) + launch.inner.workspace.offset;
  if (launch.workspace->host != nullptr && address % block_alignment != 0) {
    call.refuse("G05",
                fmt::format("the workspace begins at {}, which is not a multiple of {}", address, block_alignment));
  }
}

}  // namespace

namespace {

// Replaces the layer's handle by the provider's. Returns the layer's object, or null.
Memory* enter(Call& call, ep_buffer* buffer) {
  Memory* memory = nullptr;
  if (buffer->memory != nullptr) memory = static_cast<Memory*>(call.enter(Kind::memory, buffer->memory));
  buffer->memory = memory == nullptr ? nullptr : static_cast<ep_memory*>(memory->inner);
  return memory;
}

void check_header(Call& call, const ep_graph_desc* given) {
  if (given == nullptr) return call.refuse("A01", "the table is NULL");
  if (given->struct_type != EP_STRUCT_GRAPH_DESC || given->struct_size < sizeof *given) {
    return call.refuse("T01", fmt::format("the table's struct_size is {} and its struct_type {}", given->struct_size,
                                          given->struct_type));
  }
  const bool lists = given->values != nullptr && given->constants != nullptr && given->nodes != nullptr;
  if (!lists || given->value_count == 0 || given->node_count == 0) {
    call.refuse("G03", "the table has no values, no constants or no nodes");
  }
}

}  // namespace

Argument<const ep_graph_desc*>::Argument(Call& call, const ep_graph_desc* given) : desc(given) {
  check_header(call, given);
  if (call.refused()) return;
  inner = *given;
  for (uint32_t i = 0; i < given->value_count && !call.refused(); ++i) {
    buffers.push_back(given->constants[i]);
    constants.push_back(enter(call, &buffers.back()));
  }
}

void Argument<ep_graph_answer*>::after(Call& call, ep_status status) {
  wanted = status == EP_STATUS_OK;
  const auto changed = [&](size_t index) {
    return std::memcmp(&room[index], &before[index], sizeof(ep_graph_answer)) != 0;
  };
  if (changed(room.size() - 1)) return call.blame("T01", "it wrote more answers than there are nodes");
  for (size_t i = 0; i + 1 < room.size(); ++i) {
    if (wanted == changed(i)) continue;
    return wanted ? call.blame("R01", fmt::format("it returned OK and did not answer for node {}", i))
                  : call.blame("E01", "it failed and wrote an answer");
  }
}

Argument<const ep_graph_launch*>::Argument(Call& call, const ep_graph_launch* given) {
  if (given == nullptr) {
    call.refuse("A01", "the launch is NULL");
  } else if (given->operand_count != 0 && given->operands == nullptr) {
    call.refuse("G05", "the list of operands is NULL");
  }
  if (call.refused()) return;
  inner = *given;
  for (uint32_t i = 0; i < given->operand_count && !call.refused(); ++i) {
    operands.push_back(given->operands[i]);
    memories.push_back(enter(call, &operands.back()));
  }
  workspace = enter(call, &inner.workspace);
}

void before(Tag<Slot::graph_capability>, Call& call, Device&, Argument<const ep_graph_desc*>& desc,
            Argument<ep_graph_answer*>& answers, Error&) {
  TableCheck(call, desc).run();
  answers.make_room(desc.desc->node_count);
}

void after(Tag<Slot::graph_capability>, Call& call, ep_status status, Device&, Argument<const ep_graph_desc*>& desc,
           Argument<ep_graph_answer*>& answers, Error&) {
  if (status != EP_STATUS_OK || call.blamed()) return;
  for (uint32_t i = 0; i < desc.desc->node_count && !call.blamed(); ++i) {
    check_answer(call, *desc.desc, i, answers.room[i]);
  }
}

void before(Tag<Slot::graph_compile>, Call& call, Device&, Argument<const ep_graph_desc*>& desc, Argument<ep_graph**>&,
            Argument<ep_graph_info*>&, Error&) {
  TableCheck(call, desc).run();
}

void after(Tag<Slot::graph_compile>, Call& call, ep_status status, Device&, Argument<const ep_graph_desc*>& desc,
           Argument<ep_graph**>& out, Argument<ep_graph_info*>& info, Error&) {
  if (status != EP_STATUS_OK) return;
  const ep_string name = info.room.info.implementation;
  if (name.data == nullptr || name.size == 0 || name.size > 256) {
    call.blame("R01", "ep_graph_info names no implementation");
  }
  if (out.object == nullptr || call.blamed()) return;
  Graph& graph = *out.object;
  graph.values.assign(desc.desc->values, desc.desc->values + desc.desc->value_count);
  graph.node_count = desc.desc->node_count;
  graph.info = info.room.info;
  for (Memory* memory : desc.constants) {
    if (memory == nullptr) continue;
    graph.constants.push_back(memory);
    ++memory->constants;
  }
}

void before(Tag<Slot::graph_destroy>, Call& call, Device&, GraphHandle& graph) {
  if (graph.object != nullptr) call.check_unused(*graph.object);
}

void after(Tag<Slot::graph_destroy>, Call&, ep_status, Device&, GraphHandle& graph) {
  if (graph.object == nullptr) return;
  for (Memory* memory : living(graph.object->constants)) --memory->constants;
  Objects::instance().bury(graph.object);
}

void before(Tag<Slot::graph_launch>, Call& call, GraphHandle& graph, StreamHandle&,
            Argument<const ep_graph_launch*>& launch, Argument<ep_fault*>& fault, Error&) {
  if (call.layer->synchronous() && fault.out == nullptr)
    call.refuse("A01", "out_fault is NULL on a synchronous device");
  const std::vector<Border> borders = borders_of(*graph.object, launch);
  size_t wanted = 0;
  for (const ep_graph_value& value : graph.object->values) {
    wanted += (value.flags & (EP_GRAPH_VALUE_INPUT | EP_GRAPH_VALUE_OUTPUT)) != 0;
  }
  if (launch.operands.size() != wanted) {
    return call.refuse("G05", fmt::format("{} operands were given, the graph has {} inputs and outputs",
                                          launch.operands.size(), wanted));
  }
  check_borders(call, *graph.object, borders);
  if (!call.refused()) check_workspace(call, *graph.object, launch);
}

void after(Tag<Slot::graph_launch>, Call& call, ep_status status, GraphHandle& graph, StreamHandle& stream,
           Argument<const ep_graph_launch*>& launch, Argument<ep_fault*>& fault, Error&) {
  if (status == EP_STATUS_FAULT) {
    if (!call.layer->synchronous()) return call.blame("F01", "a launch on an asynchronous device returned FAULT");
    const ep_fault& told = fault.written;
    if (told.tag != launch.inner.tag || told.code <= 0 || EP_FAULT_NODE(told.flags) >= graph.object->node_count) {
      call.blame("G07", fmt::format("it answered FAULT with tag {}, code {} and node {} of {}", told.tag, told.code,
                                    EP_FAULT_NODE(told.flags), graph.object->node_count));
    }
  }
  if (status != EP_STATUS_OK || call.layer->synchronous()) return;
  for (const Border& one : borders_of(*graph.object, launch)) {
    if (one.output) forget_values(*one.memory, one.offset, one.bytes);
  }
  if (launch.workspace != nullptr) {
    forget_values(*launch.workspace, launch.inner.workspace.offset, graph.object->info.workspace_bytes);
  }
  submitted(*stream.object, {graph.object, launch.workspace});
  for (Memory* memory : launch.memories) memory->uses.raise(stream.object->number, stream.object->point);
  for (Memory* memory : living(graph.object->constants))
    memory->uses.raise(stream.object->number, stream.object->point);
  if (call.layer->inner.stream_take_fault != nullptr) {
    stream.object->launched.push_back({launch.inner.tag, stream.object->point, graph.object->node_count});
  }
}

}  // namespace tenon::loader::validate
