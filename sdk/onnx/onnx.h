// Loads and runs ONNX models, and writes functions of tensors as such.
//
//   tenon::onnx::Model model = tenon::onnx::load("resnet.onnx");
//   tenon::TensorList y = model.run({{"image", x}});
//
// load() checks a model: one error lists everything in it that cannot run. A model file is untrusted input: the
// importer checks sizes before it allocates memory, and reads external data only below one folder. Errors: every
// function of this header throws tenon::Error and no other exception.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/background/compiling.h"
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
  // Whether ops that one kernel can compute become one; as TENON_FUSE says, if it is not given. Passes::exact has none.
  std::optional<bool> fuse = {};
  // Whether the first run waits for these kernels; as TENON_COMPILE says, if it is not given.
  std::optional<Compiling> compile = {};
  // How far inputs must match the shapes that the file declares.
  Shapes shapes = Shapes::exact;
  // The number of prepared graphs that a model keeps, one per signature, beside at most eight recordings of which they
  // are made. A signature is the shapes of the inputs, and the values of inputs that are shapes. What is unused for
  // longest is dropped first.
  uint32_t max_recorded = 16;
  // What the ops of the model demand of the devices that run them; without it, what the calling thread demands now.
  Precision precision = current_precision();
};

// What models take, give and compute: a tensor of numbers, a tensor of strings, a sequence of values, a map, or an
// optional that holds nothing. (An optional that holds a value is that value.) A cheap handle; its strings and elements
// never change.
class TENON_API Value {
 public:
  enum class Kind : uint8_t { none, tensor, strings, sequence, optional, map };

  Value() = default;
  Value(Tensor tensor) : tensor_(std::move(tensor)) {}
  // A tensor of strings: elements in row-major order. Errors: invalid_argument (another number of elements).
  static Value strings(Dims dims, std::vector<std::string> elements);
  static Value sequence(std::vector<Value> elements);
  // An optional that holds nothing.
  static Value nothing();
  // A map from `keys`, a list of strings or of i64, to `values`, a list of as many strings or numbers.
  static Value map(Value keys, Value values);
  // A sequence of n maps, of which each has the same c keys and a row of `matrix` [n, c] as its values, as ZipMap gives
  // it.
  static Value maps(const Value& keys, const Tensor& matrix);

  Kind kind() const;
  bool defined() const { return kind() != Kind::none; }
  bool is_tensor() const { return kind() == Kind::tensor; }
  // Errors of the following: invalid_argument (the value is of another kind).
  const Tensor& tensor() const;
  const std::vector<std::string>& strings() const;
  const std::vector<Value>& elements() const;
  // Of a map; keys() also of a sequence that maps() made.
  const Value& keys() const;
  const Value& values() const;
  // The matrix of a sequence that maps() made; undefined for every other value.
  Tensor matrix() const;
  // Of tensors, of numbers and of strings.
  const Dims& dims() const;

 private:
  struct Host;
  Tensor tensor_;
  std::shared_ptr<const Host> host_;
};

using ValueList = std::vector<Value>;

// "f32[2, 3]", "string[2]", "a sequence of 3", "a map of 3", "an optional without a value", "nothing"
TENON_API std::string to_string(const Value& value);

// One dim of an input or output.
struct Dim {
  int64_t value = -1;  // -1: dynamic
  std::string name;    // of a dynamic dim; may be empty
};

struct ValueInfo {
  std::string name;
  Value::Kind kind = Value::Kind::tensor;  // of an optional: what it may hold
  bool optional = false;                   // it may hold nothing
  DType dtype = DType::none;               // of a tensor of numbers, or of the numbers that a map has as values
  bool has_shape = false;                  // false: any rank
  std::vector<Dim> dims;
};

// "f32[batch, 3, 224, 224]", "string[2]", "a sequence", "a map", "an optional tensor"
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

// What a file says of itself, and statistics of load(), for reports.
struct ModelInfo {
  std::string producer, domain;
  std::string graph, description;                  // the name of the graph; what the file says of itself
  std::map<std::string, std::string> metadata;     // what its makers attached, such as the labels of classes
  int64_t ir_version = 0, opset = 0, version = 0;  // version: of the model, as its makers count
  uint64_t nodes = 0, weights = 0, weight_bytes = 0;
};

using Inputs = std::map<std::string, Tensor>;
using Values = std::map<std::string, Value>;

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
  // No model: every function but this refuses it. For members and containers.
  Model() = default;
  explicit Model(std::shared_ptr<Impl> impl);
  explicit operator bool() const { return impl_ != nullptr; }

  const std::vector<ValueInfo>& inputs() const;  // without inputs that have an initialiser
  // The inputs that have an initialiser, in a file of IR version 4 or newer. The initialiser is their value where a run
  // does not name them.
  const std::vector<ValueInfo>& defaults() const;
  const std::vector<ValueInfo>& outputs() const;
  const ModelInfo& info() const;
  Device device() const;

  // Checks that `names` are the names of all inputs, and perhaps of some of defaults(). run() calls it first. Errors:
  // invalid_argument with every unknown name and every missing input, because one is often a misspelling of the other.
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
  // Runs a model whose inputs or outputs are strings, sequences, maps or optionals; such a model runs node after node.
  // A missing input that is an optional holds nothing. The forms above refuse outputs that are no tensors of numbers.
  ValueList run_values(const Values& inputs, std::vector<NodeExecution>* executions = nullptr) const;

  // Runs with the inputs in the order of inputs(), also as model(x, y). Errors: as above, and another number of inputs.
  TensorList run_in_order(const TensorList& inputs) const;
  template <std::same_as<Tensor>... Inputs>
  TensorList operator()(const Inputs&... inputs) const {
    return run_in_order({inputs...});
  }
  // As run, with the outputs by their names: model.run_named({{"x", x}}).at("y").
  Inputs run_named(const Inputs& inputs) const;

  // The graph (core/graph) that runs on inputs of these shapes are recorded as, before any pass; its inputs are those
  // of the model whose elements no shape depends on. `open`: dynamic dims are symbols, whose hints the inputs give;
  // else they are numbers. For tools. Errors: as run(); unsupported if a shape depends on data.
  graph::Graph record(const Inputs& inputs, bool open = false) const;
  // How often run() recorded the model. One recording serves all sizes that its guards allow.
  uint64_t recorded() const;

 private:
  friend class Walk;
  Impl& impl() const;
  std::shared_ptr<Impl> impl_;
};

// The result of one node of a Walk.
struct NodeResult {
  int32_t node = -1;  // number of the node in the file
  std::string name, op_type;
  bool known = false;               // it follows from weights alone, and load() computed it
  std::vector<std::string> values;  // names of `tensors`
  TensorList tensors;               // its outputs, without those that nobody wants, and those that are no tensors
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
inline Model load_bytes(std::span<const uint8_t> bytes, const Options& options = {}) {
  return load_bytes(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), options);
}
inline Model load_bytes(std::span<const std::byte> bytes, const Options& options = {}) {
  return load_bytes(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), options);
}

// What check() finds in a model file.
struct Checked {
  ModelInfo info;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<ValueInfo> defaults;    // the inputs that have an initialiser, as Model::defaults()
  std::vector<std::string> refusals;  // a sentence for each thing that cannot run, with the node; empty: it loads
};
// Says what load() would refuse, without external data, which need not be there. Errors: not_found, invalid_argument,
// as load().
TENON_API Checked check(const std::string& path, const Options& options = {});

// Reads one tensor in ONNX's format, such as the input_0.pb of a test case. `name` may be NULL.
TENON_API Tensor tensor_from_bytes(std::string_view bytes, Device device = {}, std::string* name = nullptr);
// The same for any value: a TensorProto, SequenceProto or OptionalProto, as `info` says.
TENON_API Value value_from_bytes(std::string_view bytes, const ValueInfo& info, Device device = {});
TENON_API std::string tensor_to_bytes(const Tensor& tensor, std::string_view name);
// The same of a tensor of numbers or of strings. Errors: invalid_argument (the value is of another kind).
TENON_API std::string value_to_bytes(const Value& value, std::string_view name);

// One line per operator that the importer translates: {domain, name, first and last opset version}.
struct SupportedOperator {
  std::string_view domain, name;
  int32_t since = 1, until = 0;
};
TENON_API std::vector<SupportedOperator> supported_operators();

// How a function of tensors is written as a model.
struct ExportOptions {
  std::string name = "export";            // what errors call the function, and the name of the graph
  std::vector<std::string> input_names;   // none: "input", or "input_0" and so on
  std::vector<std::string> output_names;  // none: "output", or "output_0" and so on
  // The axes of inputs whose sizes stay open, each with the name of its size ("" for one of our own); an axis may be
  // counted from the end. Without it every size stays open by which the function did not decide.
  std::optional<std::map<std::string, std::map<int64_t, std::string>>> dynamic_axes = {};
  std::vector<std::pair<std::string, Tensor>> parameters = {};  // the names of tensors from outside, as initialisers
};

using ExportedFunction = std::function<TensorList(const TensorList&)>;

// Records one call of `function` on tensors that look like `examples`, whose elements nobody reads, and writes it to a
// file, of opset 17. Tensors from outside, such as weights, become initialisers.
//
//   tenon::onnx::export_model([&](const TensorList& in) { return TensorList{relu(matmul(in[0], w))}; }, {x}, "m.onnx");
//
// Errors: those of the function; invalid_argument (what a recording cannot see; names that do not fit; a path that
// cannot be written); not_found (no such folder); unsupported, with a line for each kind of op that ONNX lacks: also a
// function that writes tensors from outside or draws random numbers, a model beyond 2 GiB, and a dynamic axis by which
// the function decided.
TENON_API void export_model(const ExportedFunction& function, const TensorList& examples, const std::string& path,
                            const ExportOptions& options = {});
// The same as the bytes of such a file.
TENON_API std::string export_bytes(const ExportedFunction& function, const TensorList& examples,
                                   const ExportOptions& options = {});

// One line per op that is written, with the operator that stands for it, or the main one of several.
struct ExportedOp {
  std::string_view op, onnx;
};
TENON_API std::vector<ExportedOp> exported_ops();

}  // namespace tenon::onnx
