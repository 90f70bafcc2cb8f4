// NodeContext: the translator's view of a node: inputs as tensors or known numbers, attributes with defaults.
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/sizes.h"
#include "core/tensor/scalar.h"
#include "core/tensor/tensor.h"
#include "sdk/onnx/importer/parsed_model.h"

namespace tenon::onnx {

// Thrown by a translator during recording if it needs the elements of a value that is not known yet.
struct UnknownValue : std::exception {
  explicit UnknownValue(int32_t of) : value(of) {}
  const char* what() const noexcept override { return "the elements of a value are not known yet"; }
  int32_t value;  // number of the value in the parsed model
};

class NodeContext {
 public:
  // `values` are the values of the parsed model, by number; running a graph of the node changes those of the graph. If
  // an input is on the node's device and is not a small integer tensor on the host, all inputs are moved to this
  // device.
  NodeContext(const ParsedModel& parsed, const Node& node, std::vector<Value>* values);

  const Node& node() const { return node_; }
  int64_t version() const { return node_.version; }
  // The device of the node's results.
  Device device() const { return device_; }

  size_t input_count() const { return node_.inputs.size(); }
  size_t output_count() const { return node_.outputs.size(); }
  bool has(size_t i) const { return i < node_.inputs.size() && node_.inputs[i] >= 0; }
  bool wants(size_t i) const { return i < node_.outputs.size() && node_.outputs[i] >= 0; }

  // Input i on the node's device. Errors: the node has no input i, or it is not a tensor of numbers.
  const Tensor& input(size_t i);
  // Input i of any kind, on any device.
  const Value& value(size_t i) const;
  Tensor optional(size_t i) { return has(i) ? input(i) : Tensor(); }
  // Input i on the host. Throws UnknownValue if its elements are not known.
  Tensor known_input(size_t i) const { return known(i).to(Device::host()); }
  // All inputs from number `first` on.
  TensorList inputs(size_t first = 0);
  const Dims& dims(size_t i) const { return raw(i).dims(); }
  // Like dims(), integers() and ints(), but the sizes may be expressions while the model is recorded.
  SymDims sizes(size_t i) const { return tenon::sizes(raw(i)); }
  std::vector<SymDim> size_list(size_t i) const;
  int32_t rank(size_t i) const { return raw(i).rank(); }
  DType dtype(size_t i) const { return raw(i).dtype(); }
  // True if the elements of the tensor are known while the model is recorded.
  static bool is_known(const Tensor& tensor);

  // Throws UnknownValue while the model is recorded: the node can only compute on the host when the model runs.
  static void require_eager();
  // Called before a translator computes `bytes` bytes of results on the host in about `steps` steps. While the model is
  // recorded the limit is low, and more throws UnknownValue: the node then computes when the model runs. Errors:
  // unsupported, with both numbers, if they exceed the limit for any node.
  void require_host_work(double bytes, double steps) const;

  // Runs a graph of an attribute with one value in `inputs` for each of its inputs. It can read values of outer graphs.
  ValueList run(const Subgraph& graph, const ValueList& inputs);
  const Subgraph& graph(std::string_view name) const;
  // A value by its number, such as one that a graph of the node reads.
  const Value& captured(int32_t number) const { return values_[static_cast<size_t>(number)]; }

  // Errors: an input has an element type that ONNX forbids for the operator, or inputs and attributes contradict each
  // other (schema/).
  void check_rules() const;

  // The product of the dims of input i from axis `first` up to `last`. Errors: the product exceeds 63 bits. (If one dim
  // is 0, other dims may have any size.)
  SymDim product(size_t i, int64_t first, int64_t last) const;

  // The elements of an integer input, of at most kHostElements. Throws UnknownValue if they are not known.
  std::vector<int64_t> ints(size_t i) const;
  // The single element of an input.
  Scalar scalar(size_t i) const;
  std::vector<double> numbers(size_t i) const;
  // All elements of input i as T, for operators that compute on the host. Throws UnknownValue if they are not known.
  template <class T>
  std::vector<T> elements(size_t i) const;

  // The attribute, or `initial` if the node lacks it. Errors: the attribute has another kind.
  int64_t integer(std::string_view name, int64_t initial) const;
  bool flag(std::string_view name, bool initial) const { return integer(name, initial ? 1 : 0) != 0; }
  double number(std::string_view name, double initial) const;
  std::string text(std::string_view name, std::string_view initial) const;
  // Empty if the attribute is absent.
  std::optional<std::vector<int64_t>> integers(std::string_view name) const;
  // The list of an attribute, which lives as long as the node; empty if the node lacks it.
  std::span<const float> float_list(std::string_view name) const;
  std::span<const int64_t> integer_list(std::string_view name) const;
  std::span<const std::string> text_list(std::string_view name) const;
  const Attribute* find(std::string_view name) const;
  const Attribute& require(std::string_view name, Attribute::Kind kind) const;

  // The value that `make()` built from attributes in the first run of the node on this device: a translator builds
  // nothing twice that depends on attributes alone. `make` must not read inputs; before it calls ops, it calls
  // require_eager(). The result lives as long as the node. `name` distinguishes several results of one type.
  template <class T, class Make>
  const T& kept(std::string_view name, Make make) const {
    return node_.kept.get<T>(name, device_.state(), std::move(make));
  }

  // The attribute `axis`, from 0 to rank - 1 (to rank if `end` is true).
  int64_t axis(int64_t initial, int32_t rank, bool end = false) const;
  // Counts a negative axis from the end. Errors: an axis outside [-rank, rank).
  int64_t normalise_axis(int64_t axis, int64_t rank) const;
  // Axes from the attribute `axes` before opset `since_input`, and from input `index` since then. Empty if absent.
  std::optional<std::vector<int64_t>> axes(size_t index, int64_t since_input) const;

  // The tensor 0, 1, .. count - 1 in i64 on the node's device. Errors: unsupported if count exceeds 2^24.
  Tensor positions(SymDim count) const;
  // Input i, integers, as i64. Errors: an element is below `least` or above `most`. If the elements are not known yet,
  // the run fails with an index out of range.
  Tensor within(size_t i, int64_t least, SymDim most);
  // A one-dimensional i64 tensor on the host.
  static Tensor host_ints(std::span<const int64_t> values);

  // Throws `unsupported`. `reason` completes "node 3 (/x): ".
  [[noreturn]] void unsupported(const std::string& reason) const;
  [[noreturn]] void invalid(const std::string& what) const;

 private:
  const Tensor& raw(size_t i) const;
  const Tensor& known(size_t i) const;
  const Attribute* find(std::string_view name, Attribute::Kind kind) const;

  const ParsedModel& parsed_;
  const Node& node_;
  std::vector<Value>& values_;
  Device device_;
  std::vector<Tensor> moved_;
};

}  // namespace tenon::onnx
