// CompiledCall: a call that kernels compute which the device has compiled from text, the third rung of the ladder. The
// kernel compiler stands above the interpreter; core/codegen/eager defines what it is asked for here. Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/device/device_state.h"
#include "core/ops/op_call.h"

namespace tenon {

constexpr uint32_t kCallsBeforeKernels = 16;

// The kernels of one signature. Immutable. Threads: any number may run it at a time.
class CompiledCall {
 public:
  virtual ~CompiledCall() = default;
  // Computes `call`, of the signature that it was made for, and fills call.outputs. Throws.
  virtual void run(const OpCall& call) const = 0;
  // How many bytes it holds, apart from the kernels.
  virtual uint64_t bytes() const = 0;
};

// What compiled_call found: kernels; or some that a compiler works on, or that wait for more calls; or why there are
// none.
struct CompiledAnswer {
  std::shared_ptr<const CompiledCall> call;
  // How many kernels a compiler still works on beside the program. At 0 the same question has another answer.
  std::shared_ptr<const std::atomic<uint32_t>> left;
  // How many calls still run on a lower rung before a compiler is asked; each of them takes one off. At 0 the same
  // question has another answer.
  std::shared_ptr<std::atomic<uint32_t>> calls_left;
  // The scalars of the call are numbers in the text of the kernels.
  bool baked = false;
  std::string why_not;
};

// Whether the calling thread only asks who would compute calls, and runs none of them.
inline thread_local constinit bool only_asks = false;

// While it lives, no kernel is compiled to answer a question of its thread.
class OnlyAsks {
 public:
  OnlyAsks() : before_(std::exchange(only_asks, true)) {}
  ~OnlyAsks() { only_asks = before_; }
  OnlyAsks(const OnlyAsks&) = delete;
  OnlyAsks& operator=(const OnlyAsks&) = delete;

 private:
  bool before_;
};

// The kernels that compute `call` on `device`, whose results are `outputs`. Reads metadata and scalars only. It waits
// for the device's compiler, or has it work beside the program, as TENON_COMPILE says; in the latter case not before
// kCallsBeforeKernels calls, since a compiler takes longer than a few calls on another rung. Threads: any.
// Errors: cancelled.
CompiledAnswer compiled_call(const OpCall& call, DeviceState* device, const std::vector<TensorMeta>& outputs);

}  // namespace tenon
