// CompiledCall: a call computed by kernels that the device has compiled from text, which is the third rung of the
// ladder. The kernel compiler is above the interpreter; core/codegen/eager defines the functions declared here.
// Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/device/call_context.h"
#include "core/device/device_state.h"
#include "core/ops/op_call.h"

namespace tenon {

constexpr uint32_t kCallsBeforeKernels = 16;

// The kernels of one signature. Immutable. Threads: several threads may run it at once.
class CompiledCall {
 public:
  virtual ~CompiledCall() = default;
  // Computes `call`, which must have its signature, and fills call.outputs. Throws.
  virtual void run(const OpCall& call) const = 0;
  // The bytes that it holds, apart from the kernels.
  virtual uint64_t bytes() const = 0;
};

// The answer of compiled_call: kernels; or kernels that are being compiled, or that wait for more calls; or the reason
// why there are none.
struct CompiledAnswer {
  std::shared_ptr<const CompiledCall> call;
  // The number of kernels that are still being compiled in the background. When it reaches 0, ask again.
  std::shared_ptr<const std::atomic<uint32_t>> left;
  // The number of calls that still run on a lower rung before a compiler is asked; each of them subtracts one. When it
  // reaches 0, ask again.
  std::shared_ptr<std::atomic<uint32_t>> calls_left;
  // True if the call's scalars are constants in the text of the kernels.
  bool baked = false;
  std::string why_not;
};

// While this object lives, questions of its thread compile no kernel.
class OnlyAsks : ContextScope<&CallContext::compiles> {
 public:
  OnlyAsks() : ContextScope(false) {}
};

// The kernels that compute `call` on `device` with the results `outputs`. Reads only metadata and scalars. It waits for
// the device's compiler, or compiles in the background, depending on TENON_COMPILE. Background compilation starts after
// kCallsBeforeKernels calls, since a compiler takes longer than a few calls on another rung. Threads: any. Errors:
// cancelled.
CompiledAnswer compiled_call(const OpCall& call, DeviceState* device, const std::vector<TensorMeta>& outputs);

}  // namespace tenon
