// Recorder: the lazy interpreter. It writes down the ops applied to its values, and hands ops whose inputs are all
// known to the interpreter it was opened over.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/device/export.h"
#include "core/graph/graph.h"
#include "core/ops/op_call.h"

namespace tenon::graph {

class TENON_API Recorder final : public Interpreter {
 public:
  struct Options {
    // Ask the device of every op whether any rung of the ladder takes it; an op that none takes throws unsupported.
    bool check_support = false;
  };

  // Values live on `device`. Known ops go to the interpreter that is current now.
  Recorder(Device device, Options options);
  explicit Recorder(Device device) : Recorder(device, Options{}) {}

  // A new input of the program: a tensor without data.
  Tensor input(const TensorMeta& meta);
  // What the steps from now on belong to: "node 14 (/encoder/MatMul)".
  void label(std::string text);

  void apply(const OpCall& call) override;
  bool host_value_known(const Tensor& tensor) override;

  // The program that computes `outputs`, without the steps they do not need. The recorder is then empty.
  Graph finish(std::span<const Tensor> outputs);

 private:
  bool compute_now(const OpCall& call, std::span<const TensorMeta> outputs) const;
  void infer(const OpCall& call, std::vector<TensorMeta>* outputs) const;
  void record(const OpCall& call, std::span<const TensorMeta> outputs);
  uint32_t value_of(const Tensor& tensor);
  Tensor new_value(const TensorMeta& meta, uint32_t* id);

  DeviceState* device_;
  Options options_;
  Interpreter& known_;
  Graph graph_;
};

}  // namespace tenon::graph
