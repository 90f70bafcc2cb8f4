// Runs steps one at a time through an interpreter. Internal to core/graph/execute.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/graph/execute/executable.h"
#include "core/ops/op_call.h"

namespace tenon::graph {

// Runs steps of `program` one at a time.
class StepRunner {
 public:
  // `executions` may be null.
  StepRunner(const Executable& program, Interpreter& interpreter, std::vector<StepExecution>* executions)
      : program_(program), executions_(executions), interpreter_(interpreter) {}

  // Runs `step` on `inputs` (null: absent) and returns its results. Errors: those of the op, with the step's label and
  // device.
  TensorList run(const Step& step, std::span<const Tensor* const> inputs);

 private:
  std::string device_of(const Step& step, std::span<const Tensor* const> inputs) const;
  TensorList apply(const Step& step, std::span<const Tensor* const> inputs);
  TensorList launch(const Step& step, std::span<const Tensor* const> inputs);
  TensorList apply_op(const Step& step, std::span<const Tensor* const> inputs);

  const Executable& program_;
  std::vector<StepExecution>* executions_;
  Interpreter& interpreter_;
};

// Runs all steps of `program` through `interpreter` and returns the results of the program. Inputs are row-major.
TensorList walk(const Executable& program, Interpreter& interpreter, std::span<const Tensor> inputs,
                std::vector<StepExecution>* executions);

}  // namespace tenon::graph
