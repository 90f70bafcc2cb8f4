// Tenon's side of a call that torch_op.h makes in libtorch: the op with the same name, on the same numbers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "benchmarks/peers/torch_op.h"
#include "core/ops/call.h"

namespace tenon::bench {

// One call on the cpu. torch_op.h describes the case.
class TenonOp {
 public:
  TenonOp(const nlohmann::json& spec, const std::vector<Input>& inputs);

  TensorList call() const;
  void run(int64_t n) const;

 private:
  Value value_of(const nlohmann::json& j) const;

  const DynamicOp* op_;
  std::vector<Tensor> tensors_;
  std::vector<Value> arguments_;
};

// Empty if equal within `tolerance` of the greatest magnitude; else describes the difference.
std::string difference(const std::vector<Values>& want, const TensorList& got, double tolerance);

}  // namespace tenon::bench
