// Loading and running ONNX models.
//
//   tenon::onnx::Model model = tenon::onnx::load("resnet.onnx");
//   tenon::TensorList y = model.run({{"image", x}});
//
// A model is checked when it is loaded: whatever it holds that cannot run is refused there, all of it in one error. A
// model file is untrusted input: sizes are checked before memory is taken, and data outside the file is read only from
// below one folder. Whatever goes wrong in a function of this header is told by a tenon::Error, never by another
// exception.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/export.h"
#include "core/tensor/tensor.h"

namespace tenon::onnx {

enum class Shapes : uint8_t {
  exact,  // every dim that is a number
  rank,   // the number of dims; their lengths are hints
  any,    // nothing: for files that declare what they do not mean, as some of ONNX's own test cases do
};

struct Options {
  // Where weights live and ops run; none: Device::current().
  Device device;
  // The folder that external data may be read from. Empty: the folder of the model file; for a model from bytes, none.
  std::string external_data_root;
  // Without recording: every run translates and runs node after node. Slower, same answers.
  bool eager = false;
  // How far the shapes that the file declares for its inputs must hold for what is given.
  Shapes shapes = Shapes::exact;
  // Recordings kept per model, one per signature: input shapes, and the values of inputs that are
  // shapes. The recording that was not used for longest is dropped first.
  uint32_t max_recordings = 16;
};

// A dim of an input or output.
struct Dim {
  int64_t value = -1;  // -1: dynamic
  std::string name;    // of a named dynamic dim; may be empty
};

struct ValueInfo {
  std::string name;
  DType dtype = DType::none;
  bool has_shape = false;  // false: any rank
  std::vector<Dim> dims;
};

// "f32[batch, 3, 224, 224]"
TENON_API std::string to_string(const ValueInfo& info);

// One launch of a run.
struct NodeExecution {
  int32_t node = -1;  // position in the file; -1: outside any node
  std::string node_name, op_type;
  std::string op;  // Tenon's op: "matmul"
  std::string device, provider, implementation, rung, reason;
  uint64_t bytes_copied = 0;
};

// What loading did, for reports.
struct ModelInfo {
  std::string producer, domain;
  int64_t ir_version = 0, opset = 0;
  uint64_t nodes = 0, weights = 0, weight_bytes = 0;
};

using Inputs = std::map<std::string, Tensor>;

// A cheap handle. Threads: any number may call run() on one model at a time and get equal bits.
//
// On a device that computes asynchronously run() returns when the work is submitted: outputs may still be computing.
// Reading one (to_host, copy_to_host, item, data) waits for it, Tensor::wait waits without reading, and an error of the
// computation is thrown there. Until every output was read or waited for, the memory of inputs that were borrowed
// (Tensor::borrow) must not be changed, and that of tensors in `bound` neither read nor changed.
class TENON_API Model {
 public:
  struct Impl;
  explicit Model(std::shared_ptr<Impl> impl);

  const std::vector<ValueInfo>& inputs() const;  // without those that have an initialiser of the same name
  const std::vector<ValueInfo>& outputs() const;
  const ModelInfo& info() const;
  Device device() const;

  // That these are the names of all inputs and no others. Errors: invalid_argument with every name that is unknown and
  // every input that is missing: often one is the other, misspelt. run() begins with it.
  void check_names(const std::set<std::string>& names) const;

  // Runs the model; tensors on another device are copied to the model's first. The result is in the order of outputs()
  // and may still be computing (see above).
  // Errors: invalid_argument (missing or unknown input, wrong dtype or shape); what an op throws, with the node.
  TensorList run(const Inputs& inputs) const;
  // The same into tensors of the caller: each output named in `bound` is written there and is that tensor in the
  // result.
  TensorList run(const Inputs& inputs, const Inputs& bound) const;
  // The same, and says where each launch ran.
  TensorList run(const Inputs& inputs, std::vector<NodeExecution>* executions) const;

 private:
  friend class Walk;
  std::shared_ptr<Impl> impl_;
};

// What one node of a Walk made.
struct NodeResult {
  int32_t node = -1;  // position in the file; of a fused node, that of the node it grew from
  std::string name, op_type;
  bool known = false;               // it follows from weights alone and was computed when the model was loaded
  std::vector<std::string> values;  // names of `tensors`
  TensorList tensors;               // its outputs, without those nobody wants
  std::vector<NodeExecution> executions;
};

// One run of a model node after node, for tools that look at every value on its way. The nodes are those that run()
// runs: patterns that exporters spread over several nodes are one. Values are dropped after their last reader.
class TENON_API Walk {
 public:
  // Errors: as Model::run, for the inputs.
  Walk(const Model& model, const Inputs& inputs);
  Walk(Walk&&) noexcept;
  ~Walk();

  // Runs the next node; false when there is none. Errors: what an op throws, with the node.
  bool next(NodeResult* result);
  // Puts `tensor` (same dtype and dims, any device) in the place of tensors[i] of the last node, for the nodes to come.
  void replace(size_t i, const Tensor& tensor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Errors: not_found (no such file), invalid_argument (not a model, or a malformed one), unsupported (a well-formed
// model that cannot run: the message has a line for each node concerned).
TENON_API Model load(const std::string& path, const Options& options = {});
TENON_API Model load_bytes(std::string_view bytes, const Options& options = {});

// One tensor in ONNX's own format, as in the input_0.pb of a test case. `name` may be null.
TENON_API Tensor tensor_from_bytes(std::string_view bytes, Device device = {}, std::string* name = nullptr);
TENON_API std::string tensor_to_bytes(const Tensor& tensor, std::string_view name);

// One line per operator that the importer translates: {domain, name, first and last opset version}.
struct SupportedOperator {
  std::string_view domain, name;
  int32_t since = 1, until = 0;
};
TENON_API std::vector<SupportedOperator> supported_operators();

}  // namespace tenon::onnx
