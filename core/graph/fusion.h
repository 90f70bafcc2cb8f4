// Fusion: what graphs ask of the kernel compiler, which stands above them. core/compiler defines it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/symbolic/values.h"

namespace tenon {
struct CompiledModule;
}

namespace tenon::graph {

// One launch of the kernel of a fused node, for one set of sizes. Its buffers are the inputs of the region and then its
// outputs, all row-major.
struct FusedLaunch {
  std::shared_ptr<const CompiledModule> module;
  DeviceState* device = nullptr;
  uint32_t kernel = 0;  // index into module->kernels
  std::vector<std::byte> parameters;
  std::array<uint64_t, 3> groups{1, 1, 1};
  std::string ops;  // what it computes: "square mean add rsqrt mul mul"
};

// Makes each set of nodes that one kernel can compute one node, `fused`, whose region has them (regions/regions.h).
// Gives what was decided, a line for each decision.
std::string fuse_nodes(Graph* graph);

// The launch that computes `region`, of a fused node, for `sizes`; null where there is none, with the reason. The first
// call for a region waits for the device's compiler. Threads: any number.
std::shared_ptr<const FusedLaunch> fused_launch(const Graph& region, symbolic::Values* sizes, std::string* why_not);

}  // namespace tenon::graph
