// Executable: a graph for one set of sizes, as steps. Its schedule (schedule.h) says which steps run as one
// instruction, and where values are kept. Immutable after it was made. Threads: any number may run it at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/background/compiling.h"
#include "core/device/export.h"
#include "core/graph/graph.h"
#include "core/interpreter/execution_report.h"
#include "core/interpreter/work.h"
#include "core/ops/op_call.h"
#include "core/symbolic/values.h"
#include "core/tensor/labels.h"
#include "core/tensor/tensor.h"

namespace tenon {
struct CompiledGraph;
struct Prepared;
}  // namespace tenon

namespace tenon::graph {

// A value of the graph, or a value between the steps of one node. Id 0 is the absent value.
struct Slot {
  TensorMeta meta;
  DeviceState* device = nullptr;
  Tensor constant;  // defined: known before the run
};

struct Schedule;
struct PartWrite;
struct RegionStep;
struct FusedLaunch;
struct AwaitedKernels;

// A node as a record, or one op of its decomposition; or an island: many nodes that a device runs as one graph
// (islands.h).
struct Step {
  const OpInfo* op = nullptr;  // null: an island
  std::vector<uint32_t> inputs;
  std::vector<Scalar> scalars;
  std::vector<uint64_t> attributes;  // the op's attribute struct, in whole words
  std::vector<Epilogue> epilogues;
  DeviceState* device = nullptr;  // for a factory or a move
  std::vector<uint32_t> outputs;
  Precision precision = Precision::stated;
  std::vector<uint32_t> drops;  // values that no later step reads
  uint32_t label = 0;
  std::shared_ptr<const CompiledGraph> island;  // an island only has inputs, outputs, drops and a label
  // For an island: the metadata of its inputs and outputs when it was compiled.
  std::vector<TensorMeta> island_inputs, island_outputs;
  std::shared_ptr<const RegionStep> regions;  // control flow, which runs instead of a record (regions.h)
  std::string alone;  // why the record is in no island of its device; empty if the device was not asked
  // The results have the strides of their slots, even if the op's rule gives others.
  bool stated_order = false;
  bool dense_copy = false;                   // a copy that is not in the program
  std::shared_ptr<const Prepared> prepared;  // the one launch of the step; null: the step runs through the interpreter
  std::shared_ptr<const FusedLaunch> fused;  // or the launch of the kernel for its region (core/graph/fusion.h)
  std::shared_ptr<const PartWrite> part;     // it writes a part of its first input (part_write.h)
  NodeId node = kNoNode;                     // the node that it computes in whole or in part
  bool derived = false;                      // it computes a part of its node, or is a copy for it
  std::vector<ExecutionEntry> ends;          // decomposed records that end with this step
};

constexpr uint32_t kNoInput = UINT32_MAX;

struct Executable {
  std::vector<Slot> values;  // [0] is the absent value; values of the graph keep their numbers
  std::vector<Step> steps;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
  std::vector<uint32_t> over;  // PrepareOptions::over
  // Texts such as "node 14 (/encoder/MatMul)", by Step::label; labels of the graph come first. Executables of one graph
  // share them.
  std::shared_ptr<Labels> labels = std::make_shared<Labels>();
  std::shared_ptr<const Schedule> schedule;  // null: every step runs by itself
  // kernels that are compiled while their ops run one by one; null: none
  std::shared_ptr<const AwaitedKernels> awaited;
};

// True if all awaited kernels of the program are compiled or refused. If it is prepared again, it launches the compiled
// ones.
TENON_API bool is_outdated(const Executable& executable);

// The memory that the values between the steps of an executable take during a run, over all devices. Inputs, outputs
// and constants do not count.
struct PlannedMemory {
  uint64_t peak = 0;         // bytes that a run allocates at its start
  uint64_t lower_bound = 0;  // the most bytes of values that live at one step; no plan can use fewer
};
TENON_API PlannedMemory planned_memory(const Executable& executable);

// True if the step is a launch in a segment.
inline bool launches(const Step& step) { return step.prepared != nullptr || step.fused != nullptr; }
inline bool is_view(const Step& step) { return step.op != nullptr && step.op->form == OpForm::view; }

// A step as a call on tensors without data.
class StepCall {
 public:
  StepCall(const Executable& executable, const Step& step);
  StepCall(const StepCall&) = delete;
  StepCall& operator=(const StepCall&) = delete;

  const OpCall& call() const { return call_; }

 private:
  std::vector<Tensor> inputs_;
  std::vector<const Tensor*> pointers_;
  std::vector<Tensor> outputs_;
  OpCall call_;
};

struct PrepareOptions {
  bool whole_graphs = true;  // compiles the parts that a device takes as whole graphs into islands
  // True: steps are prepared and scheduled. False: each step runs by itself, like an eager op.
  bool scheduled = true;
  // Primitives may use packed constants. Results may then differ from eager results by roundings.
  bool packed = true;
  // over[i]: the input whose new state is result i; runs bind the tensor of that input to the result. kNoInput, or no
  // element: result i is not a state. If every step from the input to the result may overwrite what it reads, the state
  // is updated in place, without a copy.
  std::vector<uint32_t> over = {};
  // True: kernels compute fused nodes. False: the nodes of a fused region run one by one. Default: the setting
  // TENON_FUSE.
  std::optional<bool> fuse = {};
  // Selects if prepare() waits until the kernels are compiled. Default: the setting TENON_COMPILE.
  std::optional<Compiling> compile = {};
  // For a region: the counters of the surrounding program, which also count the region's kernels. Otherwise null.
  std::shared_ptr<AwaitedKernels> awaited = nullptr;
  // An executable of the same graph with the same options for other sizes, or null. Steps that do not depend on the
  // sizes are taken from it.
  const Executable* like = nullptr;
};

// Prepares the steps that compute `graph` with `sizes` for its symbols and row-major inputs. Errors: invalid_argument
// for impossible sizes, with symbol and op; those of the ops' rules; those of a compiler; unsupported for an op that no
// rung of the ladder takes.
TENON_API Executable prepare(const Graph& graph, symbolic::Values* sizes, const PrepareOptions& options = {});
// Like the other prepare(), for a graph without symbols.
TENON_API Executable prepare(const Graph& graph, const PrepareOptions& options = {});

struct StepExecution {
  uint32_t label = 0;
  ExecutionEntry entry;
  Work work = {};  // a launch that was prepared with the program; otherwise empty
};

// Runs `executable` on `inputs`, which have the shapes it was prepared for; inputs that are not row-major are copied.
// Results are row-major and share no memory with inputs, constants or each other. `bound` is empty or has one tensor
// per output; the run writes a result into its bound tensor if that is defined. It writes this tensor last; if no other
// tensor of the run shares its memory, it may write it as soon as the result is computed. `executions` may be null.
// Under another interpreter than the eager one (for gradients or a recorder), every step goes to that interpreter if an
// input wants a gradient or has no data. Errors: invalid_argument for inputs of another dtype, shape or device; those
// of the ops, with "  while running node 14 (...) on cpu:0"; cancelled, between two launches, under a
// CancellationScope.
TENON_API TensorList run(const Executable& executable, std::span<const Tensor> inputs,
                         std::span<const Tensor> bound = {}, std::vector<StepExecution>* executions = nullptr);

}  // namespace tenon::graph
