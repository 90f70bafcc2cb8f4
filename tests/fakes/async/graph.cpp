// Whole graphs: the fake takes random nodes, in islands that it draws from a seed, and runs each node by the reference.
// Inner values lie in memory that is filled with garbage before each run: the workspace, or the graph's own memory.
#include <fmt/core.h>

#include <cstring>
#include <utility>

#include "primitives/descriptor/descriptor.h"
#include "primitives/reference/reference.h"
#include "sdk/provider/negotiate.h"
#include "tests/fakes/async/device.h"

using tenon::fakes::Command;

struct ep_graph {
  struct Value {
    uint64_t flags = 0;
    uint64_t bytes = 0;
    ep_buffer constant{};        // a constant that is read at each run, or
    std::vector<char> contents;  // a copy that was made when the graph was compiled
    uint64_t at = 0;             // offset of an inner value in the memory for these
    uint32_t border = 0;         // position of an input or output at a launch
  };

  ep_device* device = nullptr;
  std::vector<Value> values;
  std::vector<ep_graph_node> nodes;
  uint64_t inner_bytes = 0;
  bool in_workspace = false;

  const ep_graph_operand& operand(size_t node, uint32_t index) const { return nodes[node].operands[index]; }
};

namespace tenon::fakes {
namespace {

constexpr uint64_t kAlignment = 256;
constexpr uint32_t kIslands = 3;
constexpr int kGarbage = 0xc7;

// Returns the same number for the same arguments.
uint64_t draw(uint64_t seed, uint64_t index) {
  uint64_t value = (seed + 1) * 0x9e3779b97f4a7c15u + index * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

ep_string words(const char* text) { return {text, std::strlen(text)}; }

bool knows(const ep_primitive_desc& desc) {
  return desc.kind < kMix && !descriptor::has_any(desc) && !descriptor::has_opaque(desc) &&
         descriptor::check_descriptor(desc).ok();
}

// The island changes at one node in three, so an island consists of several separate runs of nodes.
ep_status graph_capability(ep_device* device, const ep_graph_desc* graph, ep_graph_answer* out, ep_error** error) {
  if (is_lost()) return lost(device, error);
  const uint64_t seed = async_control().graph_seed.load();
  uint32_t island = 1;
  for (uint32_t i = 0; i < graph->node_count; ++i) {
    const uint64_t drawn = draw(seed, i);
    if (seed != 0 && drawn % 3 == 0) island = 1 + static_cast<uint32_t>(drawn >> 8) % kIslands;
    const bool left_out = seed != 0 && (drawn >> 16) % 5 == 0;
    out[i] = {};
    if (!knows(graph->nodes[i].primitive)) {
      out[i].reason = words("the reference does not know the primitive");
    } else if (left_out) {
      out[i].reason = words("the draw has left it out");
    } else {
      out[i].island = island;
    }
  }
  return EP_STATUS_OK;
}

void add_values(const ep_graph_desc& desc, uint64_t seed, ep_graph* graph) {
  uint32_t border = 0;
  for (uint32_t i = 0; i < desc.value_count; ++i) {
    ep_graph::Value& value = graph->values.emplace_back();
    value.flags = desc.values[i].flags;
    value.bytes = desc.values[i].bytes;
    if (value.flags == EP_GRAPH_VALUE_CONSTANT) {
      value.constant = desc.constants[i];
      const char* bytes = address(value.constant);
      if (draw(seed, i) % 2 == 0) value.contents.assign(bytes, bytes + value.bytes);
    } else if (value.flags != 0) {
      value.border = border++;
    } else {
      value.at = graph->inner_bytes;
      graph->inner_bytes += (value.bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
  }
}

ep_status graph_compile(ep_device* device, const ep_graph_desc* desc, ep_graph** out, ep_graph_info* out_info,
                        ep_error** error) {
  AsyncControl& control = async_control();
  if (is_lost()) return lost(device, error);
  if (const ep_status told = control.compile_answer; told != EP_STATUS_OK) {
    return fail(device->host, error, told, "the compiler was told to fail.");
  }
  for (uint32_t i = 0; i < desc->node_count; ++i) {
    if (!knows(desc->nodes[i].primitive)) {
      return fail(device->host, error, EP_STATUS_UNSUPPORTED, fmt::format("the primitive of node {} is unknown.", i));
    }
  }
  if (const ep_status status = compile(device, 1000 + desc->node_count, error); status != EP_STATUS_OK) return status;
  auto* graph = new ep_graph;
  const uint64_t seed = control.graph_seed.load() + control.compiled_graphs.fetch_add(1);
  control.compiled_nodes.fetch_add(desc->node_count);
  graph->device = device;
  graph->nodes.assign(desc->nodes, desc->nodes + desc->node_count);
  add_values(*desc, seed, graph);
  graph->in_workspace = graph->inner_bytes != 0 && draw(seed, 0) % 2 == 0;
  ep_graph_info info{};
  info.implementation = words("reference");
  info.host_bytes = sizeof *graph + graph->nodes.size() * sizeof(ep_graph_node);
  info.workspace_bytes = graph->in_workspace ? graph->inner_bytes : 0;
  provider::fill(out_info, info);
  *out = graph;
  return EP_STATUS_OK;
}

void graph_destroy(ep_device*, ep_graph* graph) {
  if (graph != nullptr) async_control().destroyed_graphs.fetch_add(1);
  delete graph;
}

void check_accesses(ep_graph* graph, ep_stream* stream, const ep_graph_launch& launch) {
  std::vector<Access> accesses;
  for (const ep_graph::Value& value : graph->values) {
    if (value.flags == EP_GRAPH_VALUE_CONSTANT) {
      if (value.contents.empty()) accesses.push_back({value.constant, value.bytes, false});
    } else if (value.flags != 0) {
      accesses.push_back({launch.operands[value.border], value.bytes, value.flags == EP_GRAPH_VALUE_OUTPUT});
    }
  }
  if (graph->in_workspace) accesses.push_back({launch.workspace, graph->inner_bytes, true});
  check(stream, accesses.data(), accesses.size());
}

ep_status graph_launch(ep_graph* graph, ep_stream* stream, const ep_graph_launch* launch, ep_fault*, ep_error** error) {
  AsyncControl& control = async_control();
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  if (is_lost()) return lost(stream->device, error);
  if (due(control.fail_graph, control.failed_graphs)) {
    return fail(graph->device->host, error, EP_STATUS_OUT_OF_DEVICE_MEMORY, "this graph was told to find no room.");
  }
  control.launched_graphs.fetch_add(1, std::memory_order_relaxed);
  Command command;
  command.kind = Command::graph;
  command.run = graph;
  command.tag = launch->tag;
  if (graph->in_workspace) command.workspace = address(launch->workspace);
  command.operands = std::make_shared<std::vector<char*>>();
  for (uint32_t i = 0; i < launch->operand_count; ++i) command.operands->push_back(address(launch->operands[i]));
  check_accesses(graph, stream, *launch);
  stream->push(std::move(command));
  return EP_STATUS_OK;
}

// The address of a value in one run.
char* bytes_of(const ep_graph& graph, const Command& command, char* inner, uint32_t index) {
  const ep_graph::Value& value = graph.values[index];
  if (!value.contents.empty()) return const_cast<char*>(value.contents.data());
  if (value.flags == EP_GRAPH_VALUE_CONSTANT) return address(value.constant);
  return value.flags != 0 ? (*command.operands)[value.border] : inner + value.at;
}

}  // namespace

void run_graph(const Command& command, std::vector<ep_fault>* faults) {
  const ep_graph& graph = *command.run;
  AlignedBytes own(graph.in_workspace ? 1 : graph.inner_bytes);
  char* inner = graph.in_workspace ? command.workspace : own.data();
  std::memset(inner, kGarbage, graph.in_workspace ? graph.inner_bytes : own.size());
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const ep_graph::Value& value = graph.values[i];
    if (value.flags == EP_GRAPH_VALUE_OUTPUT) std::memset((*command.operands)[value.border], kGarbage, value.bytes);
  }
  for (size_t node = 0; node < graph.nodes.size(); ++node) {
    const ep_primitive_desc& desc = graph.nodes[node].primitive;
    void* operands[EP_MAX_OPERANDS] = {};
    for (uint32_t i = 0; i < desc.operand_count; ++i) {
      const ep_graph_operand& operand = graph.operand(node, i);
      if (operand.value == EP_GRAPH_NO_VALUE) continue;
      operands[i] = bytes_of(graph, command, inner, operand.value) + operand.offset;
    }
    ep_fault fault{};
    const Status status = reference::run(desc, operands, nullptr, 0, &fault);
    if (status.code() != Code::fault) continue;
    fault.tag = command.tag;
    fault.flags |= EP_FAULT_FLAG_NODE(node);
    faults->push_back(fault);
  }
}

void fill_graph(ep_device_ops* ops) {
  ops->graph_capability = graph_capability;
  ops->graph_compile = graph_compile;
  ops->graph_destroy = graph_destroy;
  ops->graph_launch = graph_launch;
}

}  // namespace tenon::fakes
