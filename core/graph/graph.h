// Graph: a recorded program for one set of input shapes. Immutable once made. Threads: any number may run it at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/device/export.h"
#include "core/interpreter/execution_report.h"
#include "core/ops/op_call.h"
#include "core/tensor/labels.h"
#include "core/tensor/tensor.h"

namespace tenon {
struct CompiledGraph;
}

namespace tenon::graph {

// A value of the program: an input, a constant, or a result of a step. Id 0 stands for an absent value.
struct Value {
  TensorMeta meta;
  Tensor constant;  // defined: known when the program was recorded
};

// One record of the program, with values in place of tensors; or an island, which is many records that a device runs as
// one graph (islands.h).
struct Step {
  const OpInfo* op = nullptr;  // null: an island
  std::vector<uint32_t> inputs;
  std::vector<Scalar> scalars;
  std::vector<uint64_t> attributes;  // the op's attribute struct, in whole words
  DeviceState* device = nullptr;     // of a factory
  std::vector<uint32_t> outputs;
  Precision precision = Precision::stated;
  bool in_place = false;        // the outputs existed before: the step writes into them
  std::vector<uint32_t> drops;  // values that no later step reads
  uint32_t label = 0;
  std::shared_ptr<const CompiledGraph> island;  // it has inputs, outputs, drops and a label, and nothing else
  std::string alone;  // why the device does not run the record in a whole graph; empty: it was not asked
};

struct Graph {
  std::vector<Value> values;  // [0] is the absent value
  std::vector<Step> steps;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
  Labels labels;  // "node 14 (/encoder/MatMul)", by Step::label
};

struct StepExecution {
  uint32_t label = 0;
  ExecutionEntry entry;
};

// Runs `graph` on `inputs`, which have the shapes it was recorded for (inputs that are not row-major are copied),
// through the calling thread's interpreter. `bound`, if not empty, has one tensor per output; a result is
// written into its tensor if that is defined. `executions` may be null. Errors: those of the ops, with "  while running
// node 14 (...) on cpu:0".
TENON_API TensorList run(const Graph& graph, std::span<const Tensor> inputs, std::span<const Tensor> bound = {},
                         std::vector<StepExecution>* executions = nullptr);

}  // namespace tenon::graph
