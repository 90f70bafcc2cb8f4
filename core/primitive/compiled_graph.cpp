#include "core/primitive/compiled_graph.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "core/background/stop.h"
#include "core/primitive/primitive_cache.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

// All compiled graphs that exist; none outlives its device.
struct LiveGraphs {
  std::mutex mutex;
  std::unordered_set<CompiledGraph*> all;
};

LiveGraphs& live_graphs() {
  static auto* graphs = new LiveGraphs;
  return *graphs;
}

// Asks the provider once.
Status ask(DeviceState* device, const ep_graph_desc& desc, ep_graph** graph, ep_graph_info* info) {
  *info = {};
  info->struct_size = sizeof *info;
  info->struct_type = EP_STRUCT_GRAPH_INFO;
  const std::string doing =
      fmt::format("compiling a graph of {} nodes on {}", desc.node_count, device->opened->spelling);
  ep_error* error = nullptr;
  const auto compile = [&](ep_error** out) {
    return device->ops.graph_compile(device->handle, &desc, graph, info, out);
  };
  const ep_status code = stoppable(compile, &error);
  const Status status = loader::take_error(code, error, code == EP_STATUS_UNSUPPORTED ? std::string() : doing);
  return code == EP_STATUS_CANCELLED ? cancelled_error(status, doing) : status;
}

}  // namespace

CompiledGraph::~CompiledGraph() {
  ep_graph* last = nullptr;
  {
    std::lock_guard lock(live_graphs().mutex);
    live_graphs().all.erase(this);
    last = std::exchange(handle, nullptr);
  }
  if (last != nullptr) device->ops.graph_destroy(device->handle, last);
}

Result<std::shared_ptr<CompiledGraph>> compile_graph(DeviceState* device, const ep_graph_desc& desc) {
  ep_graph* handle = nullptr;
  ep_graph_info info;
  Status made = ask(device, desc, &handle, &info);
  if (made.code() == Code::out_of_device_memory) {
    clear_primitive_cache(device);
    device->allocator->recover();
    made = ask(device, desc, &handle, &info);
  }
  TENON_RETURN_IF_ERROR(made);
  auto graph = std::make_shared<CompiledGraph>();
  graph->device = device;
  graph->handle = handle;
  graph->implementation.assign(info.implementation.data ? info.implementation.data : "", info.implementation.size);
  for (uint32_t i = 0; i < desc.node_count; ++i) {
    graph->tier = std::min(graph->tier, tier_kept(desc.nodes[i].primitive, device->opened->info.accuracy));
  }
  graph->host_bytes = info.host_bytes;
  graph->device_bytes = info.device_bytes;
  graph->workspace_bytes = info.workspace_bytes;
  std::lock_guard lock(live_graphs().mutex);
  live_graphs().all.insert(graph.get());
  return graph;
}

void destroy_graphs(DeviceState* device) {
  std::lock_guard lock(live_graphs().mutex);
  for (CompiledGraph* graph : live_graphs().all) {
    if (graph->device != device || graph->handle == nullptr) continue;
    device->ops.graph_destroy(device->handle, std::exchange(graph->handle, nullptr));
  }
}

}  // namespace tenon
