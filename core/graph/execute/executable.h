// Executable: a graph for one set of sizes, as steps, and how they run: which of them one instruction launches
// together, and where the values lie meanwhile (schedule.h). Immutable once made. Threads: any number may run it at a
// time.
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

// A value of the graph, or one between the steps that compute a node. Id 0 stands for an absent value.
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

// A node as a record, or a part of its decomposition; or an island, which is many nodes that a device runs as one graph
// (islands.h).
struct Step {
  const OpInfo* op = nullptr;  // null: an island
  std::vector<uint32_t> inputs;
  std::vector<Scalar> scalars;
  std::vector<uint64_t> attributes;  // the op's attribute struct, in whole words
  std::vector<Epilogue> epilogues;
  DeviceState* device = nullptr;  // of a factory or a move
  std::vector<uint32_t> outputs;
  Precision precision = Precision::stated;
  std::vector<uint32_t> drops;  // values that no later step reads
  uint32_t label = 0;
  std::shared_ptr<const CompiledGraph> island;  // it has inputs, outputs, drops and a label, and nothing else
  // Of an island: the metadata of its inputs and outputs when it was compiled.
  std::vector<TensorMeta> island_inputs, island_outputs;
  std::shared_ptr<const RegionStep> regions;  // of control flow (regions.h): what runs in place of a record
  std::string alone;  // why the device does not run the record in a whole graph; empty: it was not asked
  // Its results have the strides of their slots, whatever the op's rule says.
  bool stated_order = false;
  bool dense_copy = false;                   // a copy that the program did not ask for
  std::shared_ptr<const Prepared> prepared;  // its one launch; null: it runs by itself, through the interpreter
  std::shared_ptr<const FusedLaunch> fused;  // or this one, of a kernel that computes its region (core/graph/fusion.h)
  std::shared_ptr<const PartWrite> part;     // it writes a part of its first input (part_write.h)
  NodeId node = kNoNode;                     // that it computes, or is a part of
  bool derived = false;                      // it is a part of its node, or a copy for it
  std::vector<ExecutionEntry> ends;          // records that were taken apart, and whose last part this step is
};

constexpr uint32_t kNoInput = UINT32_MAX;

struct Executable {
  std::vector<Slot> values;  // [0] is the absent value; those of the graph keep their numbers
  std::vector<Step> steps;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
  std::vector<uint32_t> over;  // PrepareOptions::over
  // "node 14 (/encoder/MatMul)", by Step::label; those of the graph come first. Executables of one graph share them.
  std::shared_ptr<Labels> labels = std::make_shared<Labels>();
  std::shared_ptr<const Schedule> schedule;       // null: every step runs by itself
  std::shared_ptr<const AwaitedKernels> awaited;  // kernels that some of the steps stand for; null: none
};

// Whether all kernels that the program awaited are compiled, or refused: prepared once more, it launches them.
TENON_API bool is_outdated(const Executable& executable);

// What the values between the steps of an executable take while it runs, on all devices together. Inputs, outputs and
// constants do not count.
struct PlannedMemory {
  uint64_t peak = 0;         // bytes that a run allocates at its begin
  uint64_t lower_bound = 0;  // the largest sum of bytes of values that live at one step: no plan needs less
};
TENON_API PlannedMemory planned_memory(const Executable& executable);

// Whether it is a launch of a segment.
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
  bool whole_graphs = true;  // parts that a device takes as whole graphs are compiled and become islands
  // Steps are prepared and scheduled. False: each runs by itself when its turn comes, as eager ops do.
  bool scheduled = true;
  // Kernels may take constants packed. Results may then differ from eager ones by roundings.
  bool packed = true;
  // over[i]: result i is the state after a run of this input, so runs bind the tensor of the input to the result.
  // kNoInput, or no element: it is none. Where every step that leads from the input to the result may write over what
  // it reads, the state stays where it is: a run writes what changes, and copies nothing.
  std::vector<uint32_t> over = {};
  // Whether kernels compute fused nodes, or their nodes run one by one; as TENON_FUSE says, if it is not given.
  std::optional<bool> fuse = {};
  // Whether prepare() waits for the kernels; as TENON_COMPILE says, if it is not given.
  std::optional<Compiling> compile = {};
  // Of the program around a region that is prepared: it counts the kernels of the region too. Else null.
  std::shared_ptr<AwaitedKernels> awaited = nullptr;
  // Prepared from the same graph with the same options, for other sizes; or null. What the sizes do not change is taken
  // from it.
  const Executable* like = nullptr;
};

// The steps that compute `graph` where its symbols have `sizes`, its inputs being row-major.
// Errors: invalid_argument for sizes that cannot be, with symbol and op; those of the ops' rules; those of a compiler;
// unsupported for an op that no rung of the ladder takes.
TENON_API Executable prepare(const Graph& graph, symbolic::Values* sizes, const PrepareOptions& options = {});
// The same for a graph without symbols.
TENON_API Executable prepare(const Graph& graph, const PrepareOptions& options = {});

struct StepExecution {
  uint32_t label = 0;
  ExecutionEntry entry;
  Work work = {};  // of a launch that was prepared with the program; else nothing
};

// Runs `executable` on `inputs`, which have the shapes it was prepared for; inputs that are not row-major are copied.
// Results are row-major and share no memory with inputs, constants or each other. `bound`, if not empty, has one tensor
// per output; a result is written into its tensor if that is defined. The run writes such a tensor last, or from the
// step that makes the result on if no other tensor of the run shares its memory. `executions` may be null.
// A run under another interpreter than the eager one (gradients, a recorder) hands that every step if it may matter:
// if an input wants a gradient or has no data.
// Errors: invalid_argument for inputs of another dtype, shape or device; those of the ops, with "  while running node
// 14
// (...) on cpu:0"; cancelled, between two launches, under a CancellationScope.
TENON_API TensorList run(const Executable& executable, std::span<const Tensor> inputs,
                         std::span<const Tensor> bound = {}, std::vector<StepExecution>* executions = nullptr);

}  // namespace tenon::graph
