// Region steps: control flow in an executable. Each region is prepared as a program of its own, for the same sizes, and
// the host decides before each step which of them runs. Internal to core/graph/execute.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/graph/execute/executable.h"
#include "core/ops/control.h"

namespace tenon::graph {

// A region, prepared. A result that is one of its inputs is none of the program's: it is handed on without a copy.
struct PreparedRegion {
  static constexpr uint32_t kMade = UINT32_MAX;

  Executable program;
  std::vector<uint32_t> passed;  // by result: the input that it is, or kMade
};

// The region of a fused step, with the sizes to prepare it for. Threads: any.
class LateRegion {
 public:
  LateRegion(std::shared_ptr<const Graph> region, symbolic::Values* sizes);
  // Errors: those of prepare().
  const PreparedRegion& prepared();

 private:
  const std::shared_ptr<const Graph> region_;
  std::vector<std::optional<int64_t>> sizes_;  // by symbol
  std::mutex mutex_;
  std::optional<PreparedRegion> prepared_;
};

// What Step::regions points to.
struct RegionStep {
  control::Kind kind = control::Kind::cond;
  control::Attributes attributes;
  size_t carried = 0;  // so many operands, the first ones, change from step to step
  std::vector<PreparedRegion> regions;
  // Of a fused step, which runs so under an interpreter that must see its ops: the first such run prepares the region.
  std::shared_ptr<LateRegion> late;
  std::vector<TensorMeta> results;
  std::vector<DeviceState*> devices;  // of the results
};

// The step of `node`, which has regions. Errors: those of prepare() for its regions.
std::shared_ptr<const RegionStep> prepare_regions(const Graph& graph, const Node& node, symbolic::Values* sizes,
                                                  const PrepareOptions& options);

// Appends the storages of the constants that runs of the regions read.
void add_constants(const RegionStep& step, std::vector<Storage*>* storages);

// Runs `step` on `inputs`. Results share no memory with inputs or each other. Waits for each predicate. Under another
// interpreter than the eager one that must see the ops, it has the control flow too.
// Errors: those of the ops inside, with their labels; cancelled, between two steps.
TensorList run_regions(const RegionStep& step, std::span<const Tensor* const> inputs);

}  // namespace tenon::graph
