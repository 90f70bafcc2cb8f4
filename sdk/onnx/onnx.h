// Loads and runs ONNX models.
//
//   tenon::onnx::Model model = tenon::onnx::load("resnet.onnx");
//   tenon::TensorList y = model.run({{"image", x}});
//
// load() checks a model: one error lists everything in it that cannot run. A model file is untrusted input: the
// importer checks sizes before it allocates memory, and reads external data only below one folder. Errors: every
// function of this header throws tenon::Error and no other exception.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/device/export.h"
#include "core/ops/precision.h"
#include "core/tensor/tensor.h"

namespace tenon::graph {
class Graph;
}

namespace tenon::onnx {

enum class Shapes : uint8_t {
  exact,  // every fixed dim
  rank,   // the number of dims; their lengths are hints
  any,    // nothing: for files with wrong declarations, such as some of ONNX's own test cases
};

// Which passes rewrite a recorded model.
enum class Passes : uint8_t {
  exact,    // those that keep every bit of what node after node gives
  bounded,  // those too that move results by a few roundings: batch norms in weights, epilogues, norms and gelu as one
};

struct Options {
  // The device of weights and ops. None: Device::current().
  Device device;
  // The folder of external data. Empty: the folder of the model file; a model from bytes then has none.
  std::string external_data_root;
  // True: no recording; every run translates and runs node after node. Slower, with the bits of Passes::exact.
  bool eager = false;
  // How far a recorded model is rewritten.
  Passes passes = Passes::bounded;
  // How far inputs must match the shapes that the file declares.
  Shapes shapes = Shapes::exact;
  // The number of prepared graphs that a model keeps, one per signature, beside at most eight recordings of which they
  // are made. A signature is the shapes of the inputs, and the values of inputs that are shapes. What is unused for
  // longest is dropped first.
  uint32_t max_recorded = 16;
  // What the ops of the model demand of the devices that run them; without it, what the calling thread demands now.
  Precision precision = current_precision();
};

// One dim of an input or output.
struct Dim {
  int64_t value = -1;  // -1: dynamic
  std::string name;    // of a dynamic dim; may be empty
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
  int32_t node = -1;  // number of the node in the file; -1: none, or a whole graph, which node_name describes
  std::string node_name, op_type;
  std::string op;  // Tenon's name of the op: "matmul"
  std::string device, provider, implementation, rung, reason;
  uint64_t bytes_copied = 0;
  std::string tier;  // of a native rung: the tier of accuracy of the results
  // Of a launch that was prepared with a recorded model: the bytes of its operands, and its arithmetic (2 per
  // multiplication of a product, else 1 per element); else 0.
  uint64_t bytes = 0, flops = 0;
};

// Statistics of load(), for reports.
struct ModelInfo {
  std::string producer, domain;
  int64_t ir_version = 0, opset = 0;
  uint64_t nodes = 0, weights = 0, weight_bytes = 0;
};

using Inputs = std::map<std::string, Tensor>;

// A loaded model; a cheap handle. Threads: any number may call run() on one model at once; equal inputs give equal
// bits.
//
// On an asynchronous device run() returns when the work is submitted, and outputs may still be computing. Reading an
// output (to_host, copy_to_host, item, data) waits for it and throws the error of its computation; Tensor::wait waits
// without reading. Until every output has been read or waited for, do not change the memory of borrowed inputs
// (Tensor::borrow), and neither read nor change tensors in `bound`.
class TENON_API Model {
 public:
  struct Impl;
  explicit Model(std::shared_ptr<Impl> impl);

  const std::vector<ValueInfo>& inputs() const;  // without inputs that have an initialiser
  const std::vector<ValueInfo>& outputs() const;
  const ModelInfo& info() const;
  Device device() const;

  // Checks that `names` are exactly the names of the inputs. run() calls it first. Errors: invalid_argument with every
  // unknown name and every missing input, because one is often a misspelling of the other.
  void check_names(const std::set<std::string>& names) const;

  // Runs the model. Tensors on another device are copied to the model's device first. The result has the order of
  // outputs().
  // Errors: invalid_argument (missing or unknown input, wrong dtype or shape); errors of ops, with the node.
  TensorList run(const Inputs& inputs) const;
  // Runs into tensors of the caller. Each output named in `bound` is written to that tensor, and the result holds that
  // tensor.
  TensorList run(const Inputs& inputs, const Inputs& bound) const;
  // Runs, and says where each launch ran.
  TensorList run(const Inputs& inputs, std::vector<NodeExecution>* executions) const;

  // The graph (core/graph) that runs on inputs of these shapes are recorded as, before any pass; its inputs are those
  // of the model whose elements no shape depends on. `open`: dynamic dims are symbols, whose hints the inputs give;
  // else they are numbers. For tools. Errors: as run(); unsupported if a shape depends on data.
  graph::Graph record(const Inputs& inputs, bool open = false) const;
  // How often run() recorded the model. One recording serves all sizes that its guards allow.
  uint64_t recorded() const;

 private:
  friend class Walk;
  std::shared_ptr<Impl> impl_;
};

// The result of one node of a Walk.
struct NodeResult {
  int32_t node = -1;  // number of the node in the file
  std::string name, op_type;
  bool known = false;               // it follows from weights alone, and load() computed it
  std::vector<std::string> values;  // names of `tensors`
  TensorList tensors;               // its outputs, without those that nobody wants
  std::vector<NodeExecution> executions;
};

// One run of a model, node after node, for tools that look at every value. A value is dropped after its last
// reader.
class TENON_API Walk {
 public:
  // Errors: the errors of Model::run about inputs.
  Walk(const Model& model, const Inputs& inputs);
  Walk(Walk&&) noexcept;
  ~Walk();

  // Runs the next node. False if no node is left. Errors: errors of ops, with the node.
  bool next(NodeResult* result);
  // Replaces tensors[i] of the last node by `tensor` (same dtype and dims, any device) for all later nodes.
  void replace(size_t i, const Tensor& tensor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Errors: not_found (no such file), invalid_argument (no model, or a malformed one), unsupported (a well-formed model
// that cannot run; the message has a line per node concerned).
TENON_API Model load(const std::string& path, const Options& options = {});
TENON_API Model load_bytes(std::string_view bytes, const Options& options = {});

// Reads one tensor in ONNX's format, such as the input_0.pb of a test case. `name` may be NULL.
TENON_API Tensor tensor_from_bytes(std::string_view bytes, Device device = {}, std::string* name = nullptr);
TENON_API std::string tensor_to_bytes(const Tensor& tensor, std::string_view name);

// One line per operator that the importer translates: {domain, name, first and last opset version}.
struct SupportedOperator {
  std::string_view domain, name;
  int32_t since = 1, until = 0;
};
TENON_API std::vector<SupportedOperator> supported_operators();

}  // namespace tenon::onnx
