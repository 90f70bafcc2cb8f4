// CompiledGraph: a part of a program that a device compiled as one graph (ep_api.h, "Whole graphs"), shared by
// everything that launches it. Internal to the library.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/device/device_state.h"
#include "core/primitive/node_name.h"
#include "ep_api/ep_api.h"
#include "primitives/status/status.h"

namespace tenon {

// The program that holds it, and every VM slot that still has to launch or finish it, keep it alive. It keeps the
// memory of its constants alive.
struct CompiledGraph {
  using Node = NodeName;

  CompiledGraph() = default;
  CompiledGraph(const CompiledGraph&) = delete;
  CompiledGraph& operator=(const CompiledGraph&) = delete;
  ~CompiledGraph();

  DeviceState* device = nullptr;
  ep_graph* handle = nullptr;
  std::string implementation;
  Tier tier = Tier::full;  // tier of its least exact node
  uint64_t host_bytes = 0;
  uint64_t device_bytes = 0;
  uint64_t workspace_bytes = 0;
  std::vector<Node> nodes;                // in the order of the table, which faults refer to
  std::shared_ptr<const void> constants;  // owns their memory
};

// True if `device` can compile graphs.
inline bool takes_graphs(const DeviceState* device) { return device->ops.graph_capability != nullptr; }

// Compiles `desc` on `device`, which has accepted all its nodes. Errors: unsupported, with the provider's reason;
// out_of_device_memory, after the caches were released and a second attempt failed too (rule G02).
Result<std::shared_ptr<CompiledGraph>> compile_graph(DeviceState* device, const ep_graph_desc& desc);

// Destroys every graph of `device`, which is closing. A CompiledGraph that is still referenced is empty afterwards.
void destroy_graphs(DeviceState* device);

}  // namespace tenon
