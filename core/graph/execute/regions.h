// Region steps: control flow in an executable. Each region is prepared as a program for the same sizes; during a run
// the host decides which region runs next. Internal to core/graph/execute.
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

// A prepared region. A result that is an input of the region is passed on without a copy and is not an output of the
// program.
struct PreparedRegion {
  static constexpr uint32_t kMade = UINT32_MAX;

  Executable program;
  std::vector<uint32_t> passed;  // by result: the index of the input that is passed on, or kMade
};

// The region of a fused step, with the sizes for which it is prepared when needed. Threads: any.
class LateRegion {
 public:
  LateRegion(std::shared_ptr<const Graph> region, symbolic::Values* sizes);
  // Errors: those of prepare().
  const PreparedRegion& prepared();

 private:
  const std::shared_ptr<const Graph> region_;
  std::vector<std::optional<int64_t>> sizes_;  // indexed by symbol
  std::mutex mutex_;
  std::optional<PreparedRegion> prepared_;
};

// The data behind Step::regions.
struct RegionStep {
  control::Kind kind = control::Kind::cond;
  control::Attributes attributes;
  size_t carried = 0;  // number of leading operands that change from step to step
  std::vector<PreparedRegion> regions;
  // For a fused step: its region, which runs under an interpreter that must see its ops. The first such run prepares
  // it.
  std::shared_ptr<LateRegion> late;
  std::vector<TensorMeta> results;
  std::vector<DeviceState*> devices;  // devices of the results
};

// The data for the step of `node`, which has regions. Errors: those of prepare() for its regions.
std::shared_ptr<const RegionStep> prepare_regions(const Graph& graph, const Node& node, symbolic::Values* sizes,
                                                  const PrepareOptions& options);

// Appends the storages of the constants that the regions read.
void add_constants(const RegionStep& step, std::vector<Storage*>* storages);

// Runs `step` on `inputs`. Results share no memory with inputs or each other. Waits for each predicate. An interpreter
// that must see the ops gets the control flow as a record instead if it keeps that. Errors: those of the ops inside,
// with their labels; cancelled, between two steps.
TensorList run_regions(const RegionStep& step, std::span<const Tensor* const> inputs);

}  // namespace tenon::graph
