// Whole graphs, in the mode "graphs": all nodes that the reference knows form one island, which the reference runs.
#include <cstring>
#include <utility>
#include <vector>

#include "primitives/descriptor/descriptor.h"
#include "primitives/reference/reference.h"
#include "tests/fakes/mirror/device.h"

struct ep_graph {
  const ep_host* host;
  ep_device* device = nullptr;
  std::vector<ep_graph_value> values = {};
  std::vector<ep_buffer> constants = {};
  std::vector<ep_graph_node> nodes = {};
};

namespace tenon::mirror {
namespace {

using provider::destroy;
using provider::entry;
using provider::fail_text;
using provider::fill;
using provider::make;
using provider::to_ep_string;

constexpr uint64_t workspace_bytes = 100;

bool knows(ep_device* device, const ep_primitive_desc& desc) {
  ep_primitive_desc known = desc;
  if (device->breaks("graph_guesses")) known.extensions[0] = 0;
  return !descriptor::has_any(known) && descriptor::check_descriptor(known).ok();
}

ep_status graph_capability(ep_device* device, const ep_graph_desc* graph, ep_graph_answer* out, ep_error** error) {
  for (uint32_t i = 0; i < graph->node_count; ++i) {
    const bool known = knows(device, graph->nodes[i].primitive);
    if (!known && device->breaks("graph_errors")) {
      return fail_text(device->host, error, EP_STATUS_UNSUPPORTED, "The table has a node that is unknown.");
    }
    if (device->breaks("graph_answers_few") && i != 0 && i + 1 == graph->node_count) return EP_STATUS_OK;
    out[i] = {};
    if (known) out[i].island = 1 + (device->breaks("graph_moody") ? static_cast<uint32_t>(device->asked++) : 0);
    if (!known) out[i].reason = to_ep_string("the reference does not know it");
  }
  return EP_STATUS_OK;
}

ep_status graph_compile(ep_device* device, const ep_graph_desc* desc, ep_graph** out_graph, ep_graph_info* out_info,
                        ep_error** error) {
  if (device->breaks("graph_refuses")) {
    return fail_text(device->host, error, EP_STATUS_UNSUPPORTED, "The compiler does not like it.");
  }
  if (const ep_status status = stop_if_asked(device, error); status != EP_STATUS_OK) return status;
  auto* graph = make<ep_graph>(device->host, device->host);
  graph->device = device;
  graph->values.assign(desc->values, desc->values + desc->value_count);
  graph->constants.assign(desc->constants, desc->constants + desc->value_count);
  graph->nodes.assign(desc->nodes, desc->nodes + desc->node_count);
  if (device->breaks("graph_leaks")) device->host->allocate(device->host, 64, 8);
  ep_graph_info info{};
  info.implementation = to_ep_string("reference");
  info.workspace_bytes = workspace_bytes;
  fill(out_info, info);
  *out_graph = graph;
  return EP_STATUS_OK;
}

void graph_destroy(ep_device* device, ep_graph* graph) noexcept {
  if (graph == nullptr && device->breaks("graph_null_crashes")) *static_cast<volatile char*>(nullptr) = 0;
  destroy(graph);
}

// A launch and copies of everything that it borrowed, kept until it runs.
struct GraphRun {
  const ep_graph* graph;
  std::vector<char*> values;  // by value; null: an inner value
  char* workspace;
  uint64_t tag;
  std::vector<ep_fault> faults = {};

  void run();
  void run_node(size_t node);
  void spoil(size_t node, void* const* operands);
};

void GraphRun::run() {
  std::vector<std::vector<char>> inner(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != nullptr) continue;
    inner[i].assign(graph->values[i].bytes, '\x77');
    values[i] = inner[i].data();
  }
  for (size_t node = 0; node < graph->nodes.size(); ++node) run_node(node);
  std::memset(workspace, 0x77, workspace_bytes);
}

void GraphRun::run_node(size_t index) {
  const ep_graph_node& node = graph->nodes[index];
  const ep_device& device = *graph->device;
  void* operands[EP_MAX_OPERANDS] = {};
  for (uint32_t i = 0; i < node.primitive.operand_count; ++i) {
    if (node.operands[i].value == EP_GRAPH_NO_VALUE) continue;
    operands[i] = values[node.operands[i].value] + node.operands[i].offset;
  }
  ep_fault fault{};
  const Status status = reference::run(node.primitive, operands, nullptr, 0, &fault);
  spoil(index, operands);
  if (status.code() != Code::fault || device.breaks("graph_no_fault")) return;
  fault.tag = tag + (device.breaks("graph_next_tag") ? 1 : 0);
  fault.flags |= EP_FAULT_FLAG_NODE(device.breaks("graph_first_node") ? 0 : index);
  faults.push_back(fault);
}

void GraphRun::spoil(size_t index, void* const* operands) {
  const ep_device& device = *graph->device;
  auto* first = static_cast<char*>(operands[0]);
  auto* last = static_cast<char*>(operands[graph->nodes[index].primitive.operand_count - 1]);
  if (device.breaks("graph_wrong_value")) first[0] = static_cast<char>(first[0] ^ 0x40);
  if (device.breaks("graph_writes_input") && last != nullptr && last != first) last[0] = static_cast<char>(last[0] ^ 1);
  if (device.breaks("graph_dirty_workspace") && workspace[7] != 0) first[1] = static_cast<char>(first[1] ^ 0x21);
}

GraphRun run_of(const ep_graph& graph, const ep_graph_launch& launch) {
  GraphRun run{&graph, {}, address_of(launch.workspace), launch.tag};
  uint32_t border = 0;
  for (size_t i = 0; i < graph.values.size(); ++i) {
    const uint64_t flags = graph.values[i].flags;
    if (flags == EP_GRAPH_VALUE_CONSTANT) {
      run.values.push_back(address_of(graph.constants[i]));
    } else {
      run.values.push_back(flags == 0 ? nullptr : address_of(launch.operands[border++]));
    }
  }
  return run;
}

ep_status graph_launch(ep_graph* graph, ep_stream* stream, const ep_graph_launch* launch, ep_fault* out_fault,
                       ep_error** error) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  if (graph->device->breaks("graph_lies")) {
    return fail_text(graph->host, error, EP_STATUS_UNSUPPORTED, "On second thoughts, no.");
  }
  ep_status status = EP_STATUS_OK;
  const bool waits = !graph->device->is("async");
  stream->submit([=, queue = stream->queue, run = run_of(*graph, *launch), &status]() mutable {
    run.run();
    if (run.faults.empty()) return;
    if (waits) {
      *out_fault = run.faults.front();
      status = fail_text(graph->host, error, EP_STATUS_FAULT, "A node found invalid data.");
    } else {
      queue->faults.insert(queue->faults.end(), run.faults.begin(), run.faults.end());
    }
  });
  return status;
}

}  // namespace

void fill_graph(ep_device_ops* ops) {
  ops->graph_capability = entry<graph_capability>;
  ops->graph_compile = entry<graph_compile>;
  ops->graph_destroy = graph_destroy;
  ops->graph_launch = entry<graph_launch>;
}

}  // namespace tenon::mirror
