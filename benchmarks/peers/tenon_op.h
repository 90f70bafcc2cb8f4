// Tenon's side of a call that torch_op.h makes in libtorch: the op with the same name, on the same numbers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "benchmarks/peers/torch_op.h"
#include "core/ops/call.h"

namespace tenon::bench {

// One call. The case is a line of benchmarks/sweep/cases.py; `spec["device"]` is the device, by default cpu.
class TenonOp {
 public:
  TenonOp(const nlohmann::json& spec, const std::vector<Input>& inputs);

  TensorList call() const;
  // Makes a tensor that later calls write into. False if the op does not support that.
  bool want_out();
  void run(int64_t n) const;

 private:
  Value value_of(const nlohmann::json& j) const;

  const DynamicOp* op_;
  Device device_;
  std::vector<Tensor> tensors_;
  std::vector<Value> arguments_;
  std::vector<std::string> names_;
  std::vector<Keyword> keywords_;
};

// Empty if equal within `tolerance` of the greatest magnitude; else describes the difference.
std::string difference(const std::vector<Values>& want, const TensorList& got, double tolerance);

}  // namespace tenon::bench
