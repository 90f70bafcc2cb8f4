// GradientInterpreter: the interpreter that records for backward how tensors that want gradients were made. Internal.
#pragma once

#include <string>

#include "core/device/export.h"
#include "core/ops/op_call.h"

namespace tenon::autograd {

// It wraps another interpreter, which carries out every record, and has no state of its own. A call without any tensor
// that has a history is passed directly to that interpreter.
class TENON_API GradientInterpreter final : public Interpreter {
 public:
  // `below` must outlive it.
  explicit constexpr GradientInterpreter(Interpreter& below) : below_(below) {}

  std::string name() const override;
  void apply(const OpCall& call) override;
  // Composites that have a gradient of their own arrive as records.
  bool keeps(const OpInfo& op) const override;
  bool host_value_known(const Tensor& tensor) override { return below_.host_value_known(tensor); }

  Interpreter& below() const { return below_; }

 private:
  void apply_control(const OpCall& call, bool flows);
  void apply_tracked(const OpCall& call);

  Interpreter& below_;
};

// The wrapper of the eager interpreter, which serves all threads.
GradientInterpreter& eager_gradients();

// The interpreter below gradients on this thread, which carries out the ops.
Interpreter& interpreter_below();

// True if ops of this thread are recorded for backward.
bool remembers();

// Makes eager_gradients() the interpreter of all threads without a scope. Called when a tensor wants a gradient for the
// first time.
void watch_process();

}  // namespace tenon::autograd
