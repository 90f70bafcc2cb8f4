// Plan: everything the interpreter has worked out about one exact call signature (op, attributes, dtypes, shapes,
// strides, device), so that the same call again only allocates and launches. Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/interpreter/execution_report.h"
#include "core/kernel/kernel.h"
#include "core/kernel/lowering.h"
#include "core/ops/op_call.h"

namespace tenon {

// Written by the owning thread alone, read by reports: plain adds on relaxed atomics.
struct Counters {
  std::atomic<uint64_t> launches{0};
  std::atomic<uint64_t> bytes_copied{0};

  static void add(std::atomic<uint64_t>& counter, uint64_t amount) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
};

struct PlanOperand {
  int16_t input = -1;     // index into the call's inputs, or
  int16_t output = -1;    // index into its outputs, or neither: a scalar
  int32_t alignment = 0;  // the byte alignment the device wants
  DType dtype = DType::none;
  Dims dims;  // folded
  Dims strides;
};

struct Plan {
  ~Plan();

  std::vector<uint64_t> key;
  const OpInfo* op = nullptr;
  DeviceState* device = nullptr;
  Rung rung = Rung::native;
  std::string reason;         // why each higher rung was refused
  Kernel* kernel = nullptr;   // of the native rung; one reference
  uint32_t dense_inputs = 0;  // bit i: input i is copied to be contiguous first
  bool reusable = true;       // false: scalars are baked into the kernel, so the plan serves this call only
  std::vector<TensorMeta> outputs;
  std::vector<PlanOperand> operands;
  uint32_t scalar_count = 0;
  DType scalar_dtypes[EP_MAX_SCALARS] = {};
  uint64_t workspace_bytes = 0;
  Counters counters;

  // While it runs, the tables do not destroy it, whatever the ops it calls in turn put in its place.
  int32_t running = 0;
  struct InUse {
    explicit InUse(Plan& plan) : plan(plan) { ++plan.running; }
    ~InUse() { --plan.running; }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;
    Plan& plan;
  };

  // What the plan holds, its share of the kernel not counted (that is the kernel cache's).
  uint64_t bytes() const;
};

// How far down the ladder a plan may go.
enum class Reach : uint8_t { setting, native_only };

// Works out `call` on `device`. Sees metadata only: inputs may be without data.
// Errors: those of the op's inference; unsupported when no allowed rung serves it, with every rung's reason.
Result<Plan*> make_plan(const OpCall& call, DeviceState* device, Reach reach);

// The metadata of the outputs of `call`, checked against outputs given.
Status infer_outputs(const OpCall& call, std::vector<TensorMeta>* outputs);

// The device of `call`: of its tensors, which must agree, else the one it names, else the current one.
// Errors: invalid_argument, "Expected all tensors to be on the same device, but found ...".
Result<DeviceState*> device_of(const OpCall& call);

// "matmul(f32 [4, 5], f32 [6, 7])"
std::string describe(const OpCall& call);

// Runs the rungs below native. Inputs and outputs as in OpCall.
void run_decomposed(const OpCall& call);
uint64_t run_on_host(const OpCall& call, DeviceState* device);

}  // namespace tenon
