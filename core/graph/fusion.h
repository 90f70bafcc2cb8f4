// Fusion: what graphs ask of the kernel compiler, which stands above them. core/codegen defines it.
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

// What a region has become on a device: its kernels. Threads: any number.
class FusedRegion {
 public:
  virtual ~FusedRegion() = default;
  // As fused_launch, for a region that is the same.
  virtual std::shared_ptr<const FusedLaunch> launch(const Graph& region, symbolic::Values* sizes,
                                                    const std::shared_ptr<AwaitedKernels>& awaited,
                                                    std::string* why_not) = 0;
};

// One launch of the kernel of a fused node, for one set of sizes. Its buffers are the inputs of the region and then its
// outputs, all row-major, or all in another order where it is a map.
struct FusedLaunch {
  std::shared_ptr<FusedRegion> of;
  std::shared_ptr<const CompiledModule> module;
  DeviceState* device = nullptr;
  uint32_t kernel = 0;  // index into module->kernels
  std::vector<std::byte> parameters;
  std::array<uint64_t, 3> groups{1, 1, 1};
  bool is_map = false;         // it computes place by place, whatever the order of the places is
  std::vector<uint64_t> over;  // by output: as bits, the inputs over whose memory it may be written
  std::string ops;             // what it computes: "square mean add rsqrt mul mul"
  std::string bucket;          // the sizes that its text is for; empty: there is one text for all
  std::string tiles;           // that tuning has found for it: "unroll 2"; empty: none
};

// Of which nodes kernels are made: several computes more than one op at once, all takes ops that stand alone too.
enum class FusedGroups : uint8_t { several, all };

// Makes each set of nodes that one kernel can compute one node, `fused`, whose region has them (regions/regions.h).
// Gives what was decided, a line for each decision, if `logs`.
std::string fuse_nodes(Graph* graph, FusedGroups groups = FusedGroups::several, bool logs = true);

// Kernels that are compiled beside a program whose nodes run one by one meanwhile. Threads: any.
struct AwaitedKernels {
  std::atomic<uint32_t> asked{0};  // all of them
  std::atomic<uint32_t> left{0};   // those that are not compiled yet
  std::atomic<uint32_t> ready{0};  // those that are there
};

// The launch that computes `region`, of a fused node, for `sizes`; null where there is none, with the reason. A kernel
// that is not compiled yet is compiled by this call, or, if `awaited` is not null, beside: then `awaited` counts the
// kernel, and there is no launch, or one that another text for more sizes serves. Threads: any number. Errors:
// cancelled.
std::shared_ptr<const FusedLaunch> fused_launch(const Graph& region, symbolic::Values* sizes,
                                                const std::shared_ptr<AwaitedKernels>& awaited, std::string* why_not);

}  // namespace tenon::graph
