// RecordedSegment: a function of tensors as one segment. The function runs once, eagerly; each launch that eager makes
// is prepared again for the segment, and what lies between them is planned. A small executor, for tests and benchmarks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/interpreter/segment_launch.h"
#include "core/ops/op_call.h"
#include "core/plan/memory_plan.h"
#include "core/tensor/tensor.h"

namespace tenon::testing {

class RecordedSegment {
 public:
  using Function = std::function<TensorList(std::span<const Tensor>)>;

  // `function` is called with `inputs`, all of one device, as the runs will be. What it captures is constant.
  RecordedSegment(const Function& function, const TensorList& inputs);

  const vm::Segment& segment() const { return *segment_; }
  const plan::MemoryPlan& plan() const { return plan_; }
  // A run on tensors like those of the recording: new outputs and a new block.
  Status run(std::span<const Tensor> inputs, TensorList* outputs) const;
  // The same into `outputs`, which have the layouts of made_outputs().
  Status run_into(std::span<const Tensor> inputs, std::span<const Tensor> outputs) const;
  TensorList made_outputs() const;

 private:
  friend class SegmentRecorder;

  // One storage that eager used.
  struct Value {
    Tensor keeps;  // so that no later storage has its address
    uint32_t first = 0, last = 0;
    int32_t input = -1, output = -1;
    bool made = false;  // by a step: neither input nor constant
  };
  struct Operand {
    int32_t value = -1;
    uint64_t offset = 0;
  };
  struct Step {
    std::unique_ptr<Prepared> prepared;
    const OpInfo* op = nullptr;
    std::vector<Tensor> inputs;  // undefined: absent
    std::vector<Scalar> scalars;
    std::vector<Operand> input_addresses, output_addresses;
  };

  int32_t value_of(const Tensor& tensor);
  Operand location(const Tensor& tensor, bool writes);
  void record(const OpCall& call);
  void build(const TensorList& inputs, const TensorList& outputs);
  std::vector<plan::Value> planned_values();
  vm::SegmentAddress segment_address(const Operand& operand) const;

  std::vector<Value> values_;
  std::map<Storage*, int32_t> by_storage_;
  std::vector<Step> steps_;
  std::vector<TensorMeta> output_metas_;
  std::vector<size_t> in_plan_;   // by location of the plan: the value, then the workspaces by step
  std::vector<int64_t> plan_of_;  // by value: its location in the plan, or -1
  std::vector<int64_t> constant_of_;
  std::vector<int64_t> workspace_of_;  // by step
  size_t input_count_ = 0;
  DeviceState* device_ = nullptr;
  plan::MemoryPlan plan_;
  std::shared_ptr<const vm::Segment> segment_;
};

}  // namespace tenon::testing
