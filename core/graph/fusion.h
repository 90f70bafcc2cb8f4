// Fusion: the interface of the kernel compiler that graphs use. core/codegen, which depends on graphs, implements it.
#pragma once

#include <array>
#include <atomic>
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

struct AwaitedKernels;
struct FusedLaunch;

// The compiled form of a region on one device: its kernels. Threads: any number.
class FusedRegion {
 public:
  virtual ~FusedRegion() = default;
  // Like fused_launch, for a region that equals this one.
  virtual std::shared_ptr<const FusedLaunch> launch(const Graph& region, symbolic::Values* sizes,
                                                    const std::shared_ptr<AwaitedKernels>& awaited,
                                                    std::string* why_not) = 0;
};

// One launch of the kernel of a fused node, for one set of sizes. Its buffers are the inputs of the region and then its
// outputs. All are row-major; for a map they may all have another common order.
struct FusedLaunch {
  std::shared_ptr<FusedRegion> of;
  std::shared_ptr<const CompiledModule> module;
  DeviceState* device = nullptr;
  uint32_t kernel = 0;  // index into module->kernels
  std::vector<std::byte> parameters;
  std::array<uint64_t, 3> groups{1, 1, 1};
  bool is_map = false;         // each output element depends on the input elements at the same position, in any order
  std::vector<uint64_t> over;  // by output: a bit mask of the inputs whose memory it may overwrite
  std::string ops;             // the computed ops: "square mean add rsqrt mul mul"
  std::string bucket;          // the sizes that its text serves; empty: one text serves all sizes
  std::string tiles;           // tiles that tuning found for it: "unroll 2"; empty: none
};

// Selects which nodes become kernels: `several` only fuses two or more ops, `all` also makes kernels of single ops.
enum class FusedGroups : uint8_t { several, all };

// Replaces each set of nodes that one kernel can compute by one node `fused`, whose region contains them
// (regions/regions.h). If `logs`, returns one line per decision.
std::string fuse_nodes(Graph* graph, FusedGroups groups = FusedGroups::several, bool logs = true);

// Kernels that are compiled in the background while their nodes run one by one. Threads: any.
struct AwaitedKernels {
  std::atomic<uint32_t> asked{0};  // kernels that were requested
  std::atomic<uint32_t> left{0};   // kernels that are not compiled yet
  std::atomic<uint32_t> ready{0};  // kernels that are ready
};

// The launch that computes `region`, of a fused node, for `sizes`; null, with the reason, if there is none. A missing
// kernel is compiled: in this call if `awaited` is null, otherwise in the background. In the second case `awaited`
// counts the kernel, and the result is null or a launch of a more general text that is ready. Threads: any number.
// Errors: cancelled.
std::shared_ptr<const FusedLaunch> fused_launch(const Graph& region, symbolic::Values* sizes,
                                                const std::shared_ptr<AwaitedKernels>& awaited, std::string* why_not);

}  // namespace tenon::graph
