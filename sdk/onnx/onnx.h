// Loads and runs ONNX models, and writes functions of tensors as ONNX models.
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
  exact,  // all fixed dims must match
  rank,   // the rank must match; declared lengths are hints
  any,    // no check: for files with wrong declarations, such as some of ONNX's own test cases
};

// Which passes rewrite a recorded model.
enum class Passes : uint8_t {
  exact,    // passes that keep every bit of the results of running node after node
  bounded,  // also passes that change results by a few roundings: batch norms folded into weights, epilogues, fused
            // norms and gelu
};

struct Options {
  // The device of weights and ops. Empty: Device::current().
  Device device;
  // The folder of external data. Empty: the folder of the model file, or no external data for a model from bytes.
  std::string external_data_root;
  // True: no recording; every run translates and runs node after node. Slower, with the same bits as Passes::exact.
  bool eager = false;
  // The passes that rewrite a recorded model.
  Passes passes = Passes::bounded;
  // Fuse ops that one kernel can compute. Unset: TENON_FUSE decides. Passes::exact never fuses.
  std::optional<bool> fuse = {};
  // Wait for compiled kernels in the first run. Unset: TENON_COMPILE decides.
  std::optional<Compiling> compile = {};
  // How strictly inputs must match the declared shapes.
  Shapes shapes = Shapes::exact;
  // The number of prepared graphs that a model keeps, one per signature, made from at most eight recordings. A
  // signature is the shapes of the inputs, and the values of inputs that decide shapes. The least recently used graph
  // is dropped first.
  uint32_t max_recorded = 16;
  // The precision that ops of the model demand of their devices. Default: the precision of the calling thread.
  Precision precision = current_precision();
};

// A value that models take, give and compute: a tensor of numbers, a tensor of strings, a sequence of values, a map, or
// an empty optional. (An optional that holds a value is that value.) A cheap handle; its strings and elements never
// change.
class TENON_API Value {
 public:
  enum class Kind : uint8_t { none, tensor, strings, sequence, optional, map };

  Value() = default;
  Value(Tensor tensor) : tensor_(std::move(tensor)) {}
  // A tensor of strings in row-major order. Errors: invalid_argument if the number of elements does not match.
  static Value strings(Dims dims, std::vector<std::string> elements);
  static Value sequence(std::vector<Value> elements);
  // An empty optional.
  static Value nothing();
  // A map from `keys`, a list of strings or i64, to `values`, a list of strings or numbers of the same length.
  static Value map(Value keys, Value values);
  // A sequence of n maps, as ZipMap gives it: all have the same c keys, and map i has row i of `matrix` [n, c] as
  // values.
  static Value maps(const Value& keys, const Tensor& matrix);

  Kind kind() const;
  bool defined() const { return kind() != Kind::none; }
  bool is_tensor() const { return kind() == Kind::tensor; }
  // The getters below fail with invalid_argument if the value is of another kind.
  const Tensor& tensor() const;
  const std::vector<std::string>& strings() const;
  const std::vector<Value>& elements() const;
  // The keys of a map, or of all maps of a sequence that maps() made.
  const Value& keys() const;
  const Value& values() const;
  // The matrix of a sequence that maps() made; undefined for every other value.
  Tensor matrix() const;
  // The dims of a tensor of numbers or strings.
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
  std::string name;    // name of a dynamic dim; may be empty
};

struct ValueInfo {
  std::string name;
  Value::Kind kind = Value::Kind::tensor;  // for an optional, the kind that it may hold
  bool optional = false;                   // true: it may be an empty optional
  DType dtype = DType::none;               // dtype of a tensor of numbers, or of the values of a map
  bool has_shape = false;                  // false: any rank
  std::vector<Dim> dims;
  // The type as ONNX's tools write it: "tensor(float)", "seq(map(string,tensor(float)))", "optional(tensor(int64))".
  std::string onnx_type = {};
};

// "f32[batch, 3, 224, 224]", "string[2]", "a sequence", "a map", "an optional tensor"
TENON_API std::string to_string(const ValueInfo& info);

// One launch of a run.
struct NodeExecution {
  int32_t node = -1;  // number of the node in the file; -1: none, or several nodes, which node_name describes
  std::string node_name, op_type;
  std::string op;  // Tenon's name of the op: "matmul"
  std::string device, provider, implementation, rung, reason;
  uint64_t bytes_copied = 0;
  std::string tier;  // on the native rung, the accuracy tier of the results
  // Operand bytes and arithmetic of a launch that was prepared with a recorded model (2 per multiplication of a
  // product, else 1 per element); otherwise 0.
  uint64_t bytes = 0, flops = 0;
};

// Metadata of a file and statistics of load(), for reports.
struct ModelInfo {
  std::string producer, domain;
  std::string graph, description;                  // name of the graph; description in the file
  std::map<std::string, std::string> metadata;     // metadata of the authors, such as class labels
  int64_t ir_version = 0, opset = 0, version = 0;  // version: of the model, as its authors count
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
  // An empty handle, for members and containers. Every other function refuses it.
  Model() = default;
  explicit Model(std::shared_ptr<Impl> impl);
  explicit operator bool() const { return impl_ != nullptr; }

  const std::vector<ValueInfo>& inputs() const;  // without inputs that have an initialiser
  // Inputs that have an initialiser, in files of IR version 4 or newer. A run that does not name them uses the
  // initialiser.
  const std::vector<ValueInfo>& defaults() const;
  const std::vector<ValueInfo>& outputs() const;
  const ModelInfo& info() const;
  Device device() const;

  // Checks that `names` contains all inputs, and otherwise only names of defaults(). run() calls it first. Errors:
  // invalid_argument with all unknown names and missing inputs, because one is often a misspelling of the other.
  void check_names(const std::set<std::string>& names) const;

  // Runs the model. Tensors on another device are copied to the model's device first. The result has the order of
  // outputs().
  // Errors: invalid_argument (missing or unknown input, wrong dtype or shape); errors of ops, with the node.
  TensorList run(const Inputs& inputs) const;
  // Runs and writes each output named in `bound` to that tensor; the result then holds this tensor.
  TensorList run(const Inputs& inputs, const Inputs& bound) const;
  // Runs and reports where each launch ran.
  TensorList run(const Inputs& inputs, std::vector<NodeExecution>* executions) const;
  // Runs a model whose inputs or outputs are strings, sequences, maps or optionals; such a model runs node after node.
  // A missing optional input is an empty optional. The forms above refuse outputs that are not tensors of numbers.
  ValueList run_values(const Values& inputs, std::vector<NodeExecution>* executions = nullptr) const;
  // Also writes each output named in `bound`, which must be a tensor of numbers, to that tensor.
  ValueList run_values(const Values& inputs, const Inputs& bound, std::vector<NodeExecution>* executions) const;

  // Runs with inputs in the order of inputs(); also written model(x, y). Errors: those of run(); a wrong number of
  // inputs.
  TensorList run_in_order(const TensorList& inputs) const;
  template <std::same_as<Tensor>... Inputs>
  TensorList operator()(const Inputs&... inputs) const {
    return run_in_order({inputs...});
  }
  // Like run(), but returns the outputs by name: model.run_named({{"x", x}}).at("y").
  Inputs run_named(const Inputs& inputs) const;

  // The graph (core/graph) that runs with inputs of these shapes are recorded as, before any pass. Its inputs are the
  // inputs of the model that no shape depends on. If `open`, dynamic dims are symbols with the sizes of the inputs as
  // hints; else they are numbers. For tools. Errors: as run(); unsupported if a shape depends on data.
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
  bool known = false;               // true: it depends only on weights, and load() computed it
  std::vector<std::string> values;  // names of `tensors`
  TensorList tensors;               // the outputs that are used and are tensors
  std::vector<NodeExecution> executions;
};

// One run of a model, node after node, for tools that look at every value. A value is dropped after its last reader.
class TENON_API Walk {
 public:
  // Errors: the errors of Model::run for wrong inputs.
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

// Loads a model. Errors: not_found (no such file), invalid_argument (no model, or a malformed one), unsupported (a
// well-formed model that cannot run; the message has a line for each such node).
TENON_API Model load(const std::string& path, const Options& options = {});
TENON_API Model load_bytes(std::string_view bytes, const Options& options = {});
inline Model load_bytes(std::span<const uint8_t> bytes, const Options& options = {}) {
  return load_bytes(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), options);
}
inline Model load_bytes(std::span<const std::byte> bytes, const Options& options = {}) {
  return load_bytes(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), options);
}

// The result of check().
struct Checked {
  ModelInfo info;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<ValueInfo> defaults;    // the inputs that have an initialiser, as Model::defaults()
  std::vector<std::string> refusals;  // a sentence for each part that cannot run, with the node; empty: the model loads
};
// Reports what load() would refuse. External data need not exist and are not read. Errors: not_found, invalid_argument,
// as load().
TENON_API Checked check(const std::string& path, const Options& options = {});

// Reads one tensor in ONNX's format, such as the input_0.pb of a test case. `name` may be NULL.
TENON_API Tensor tensor_from_bytes(std::string_view bytes, Device device = {}, std::string* name = nullptr);
// Reads any value: a TensorProto, SequenceProto or OptionalProto, as `info` declares.
TENON_API Value value_from_bytes(std::string_view bytes, const ValueInfo& info, Device device = {});
TENON_API std::string tensor_to_bytes(const Tensor& tensor, std::string_view name);
// Writes a tensor of numbers or strings. Errors: invalid_argument (the value is of another kind).
TENON_API std::string value_to_bytes(const Value& value, std::string_view name);

// One line per operator that the importer translates: {domain, name, first and last opset version}.
struct SupportedOperator {
  std::string_view domain, name;
  int32_t since = 1, until = 0;
};
TENON_API std::vector<SupportedOperator> supported_operators();

// How export_model writes a function.
struct ExportOptions {
  std::string name = "export";            // the name of the function in errors, and of the graph
  std::vector<std::string> input_names;   // empty: "input", or "input_0" and so on
  std::vector<std::string> output_names;  // empty: "output", or "output_0" and so on
  // The input axes whose sizes stay open, each with a name for the size ("": a generated name). A negative axis counts
  // from the end. Unset: every size stays open unless the function branched on it.
  std::optional<std::map<std::string, std::map<int64_t, std::string>>> dynamic_axes = {};
  std::vector<std::pair<std::string, Tensor>> parameters = {};  // names for captured tensors, which become initialisers
};

using ExportedFunction = std::function<TensorList(const TensorList&)>;

// Records one call of `function` on tensors with the shapes and dtypes of `examples`, and writes it to a file of opset
// 17. The elements of `examples` are not read. Captured tensors, such as weights, become initialisers.
//
//   tenon::onnx::export_model([&](const TensorList& in) { return TensorList{relu(matmul(in[0], w))}; }, {x}, "m.onnx");
//
// Errors: those of the function; invalid_argument (the function reads elements; names that do not fit; a path that
// cannot be written); not_found (no such folder); unsupported, with a line for each kind of op that ONNX lacks, and for
// a function that writes captured tensors or draws random numbers, a model larger than 2 GiB, or a dynamic axis that
// the function branched on.
TENON_API void export_model(const ExportedFunction& function, const TensorList& examples, const std::string& path,
                            const ExportOptions& options = {});
// Like export_model, but returns the bytes of the file.
TENON_API std::string export_bytes(const ExportedFunction& function, const TensorList& examples,
                                   const ExportOptions& options = {});

// One op that can be written, with the ONNX operator for it, or the main one of several.
struct ExportedOp {
  std::string_view op, onnx;
};
TENON_API std::vector<ExportedOp> exported_ops();

// An element type of tensors: Tenon's dtype, and the name and number of ONNX's TensorProto.DataType.
struct ElementType {
  DType dtype;
  std::string_view onnx;
  int32_t number;
};
TENON_API std::vector<ElementType> element_types();

}  // namespace tenon::onnx
