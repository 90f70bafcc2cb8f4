// Launches of compiled graphs, and the names of their nodes in errors.
#include <vector>

#include "core/device/process.h"
#include "core/device/trace.h"
#include "core/vm/engine.h"
#include "core/vm/inline.h"
#include "primitives/text/format.h"

namespace tenon::vm {
namespace {

Status call_provider(const GraphLaunch& launch, ep_buffer workspace) {
  DeviceState* device = launch.graph->device;
  std::vector<ep_buffer> buffers;
  for (const Operand& operand : launch.operands) buffers.push_back(operand.storage->block.at(operand.offset));
  ep_graph_launch request{};
  request.operands = buffers.data();
  request.operand_count = static_cast<uint32_t>(buffers.size());
  request.workspace = workspace;
  ep_fault fault{};
  ep_error* error = nullptr;
  const ep_status code =
      device->ops.graph_launch(launch.graph->handle, device->inline_stream, &request, &fault, &error);
  if (code == EP_STATUS_OK) return Status();
  const Status cause = loader::take_error(code, error, {});
  return code == EP_STATUS_FAULT ? graph_fault(*launch.graph, fault) : launch_error(cause, kGraph.op, {}, device);
}

Status run_inline(const GraphLaunch& launch) {
  DeviceState* device = launch.graph->device;
  for (const Operand& operand : launch.operands) TENON_RETURN_IF_ERROR(settle_operand(operand));
  TraceScope trace(kGraph.op, "launch", device);
  if (launch.graph->workspace_bytes == 0) return call_provider(launch, {});
  TicketList pending;
  TENON_ASSIGN_OR_RETURN(const memory::Block workspace,
                         device->allocator->allocate_aligned(launch.graph->workspace_bytes, &pending));
  Status status = wait_all(pending);
  if (status.ok()) status = call_provider(launch, workspace.at(0));
  device->allocator->release(workspace, {});
  return status;
}

Status submit_graph(const GraphLaunch& launch) {
  DeviceState* device = launch.graph->device;
  TENON_RETURN_IF_ERROR(check_stream(device, launch.stream));
  TraceScope trace(kGraph.op, "submit", device);
  Request request;
  request.policy = Policy::graph;
  request.stream = &device->queue->stream(launch.stream);
  request.graph = &launch;
  request.op = &kGraph;
  request.operands = launch.operands;
  if (launch.graph->workspace_bytes == 0) return submit_and_follow(request, false);
  return submit_with_workspace(&request, launch.graph->workspace_bytes);
}

}  // namespace

Status node_error(const NodeName& node, const Status& cause, const DeviceState* device) {
  const Status status = launch_error(cause, node.op.op, call_text(node.op.op, node.inputs), device);
  return node.label.empty() ? status : with_label(status, node.label, device->opened->spelling);
}

Status node_fault(const NodeName& node, const ep_fault& fault, const DeviceState* device) {
  return node_error(node, fault_status(fault, argument_name(node.op, node.operand_inputs, fault.operand)), device);
}

Status graph_fault(const CompiledGraph& graph, const ep_fault& fault) {
  const uint32_t index = EP_FAULT_NODE(fault.flags);
  if (index >= graph.nodes.size()) return launch_error(fault_status(fault, {}), kGraph.op, {}, graph.device);
  return node_fault(graph.nodes[index], fault, graph.device);
}

Status launch(const GraphLaunch& launch) {
  TENON_RETURN_IF_ERROR(process::usable());
  return launch.graph->device->synchronous ? run_inline(launch) : submit_graph(launch);
}

}  // namespace tenon::vm
