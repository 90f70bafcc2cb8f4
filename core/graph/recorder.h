// Recorder: the lazy interpreter. It keeps the records of ops on its values as a graph. It hands ops whose inputs are
// all known to the interpreter below it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/device/export.h"
#include "core/graph/graph.h"
#include "core/ops/op_call.h"

namespace tenon {
struct Recording;
}

namespace tenon::graph {

class TENON_API Recorder final : public Interpreter {
 public:
  struct Options {
    // Whether to ask the device of every op if some rung of the ladder takes the op. An op that none takes throws
    // unsupported.
    bool check_support = false;
    // What errors call the recording beside its number: "bert.onnx".
    std::string name = {};
  };

  // Values live on `device`. Known ops go to the interpreter that is current now.
  Recorder(Device device, Options options);
  explicit Recorder(Device device) : Recorder(device, Options{}) {}

  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // A new input of the program: a tensor without data.
  Tensor input(const TensorMeta& meta);
  // The label of the steps from now on: "node 14 (/encoder/MatMul)".
  void label(std::string text);

  std::string name() const override;
  void apply(const OpCall& call) override;
  bool host_value_known(const Tensor& tensor) override;

  // The program that computes `outputs`, without the steps they do not need. The recorder is then empty, and another
  // recording begins; a value of the one that has finished is refused from then on.
  Graph finish(std::span<const Tensor> outputs);

 private:
  bool compute_now(const OpCall& call, std::span<const TensorMeta> outputs) const;
  void infer(const OpCall& call, std::vector<TensorMeta>* outputs) const;
  void record(const OpCall& call, std::span<const TensorMeta> outputs);
  void begin();
  void check_values(const OpCall& call) const;
  // Errors: invalid_argument, with both names, for a value of another recording: "relu: argument 0 of shape [2] is
  // ...".
  void check_value(std::string_view op, const char* role, size_t index, const Tensor& tensor) const;
  uint32_t value_of(const Tensor& tensor);
  Tensor new_value(const TensorMeta& meta, DeviceState* device, uint32_t* id);

  DeviceState* device_;
  Options options_;
  Interpreter& known_;
  std::shared_ptr<Recording> recording_;
  Graph graph_;
};

}  // namespace tenon::graph
