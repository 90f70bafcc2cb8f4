// NodeContext: what a translator sees of its node: inputs as tensors or as known numbers, attributes with their
// defaults.
#pragma once

#include <cstdint>
#include <exception>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/scalar.h"
#include "core/tensor/tensor.h"
#include "sdk/onnx/importer/parsed_model.h"

namespace tenon::onnx {

// Thrown while recording when a translator needs the elements of a value that is not known yet.
struct UnknownValue : std::exception {
  explicit UnknownValue(int32_t of) : value(of) {}
  const char* what() const noexcept override { return "the elements of a value are not known yet"; }
  int32_t value;  // by its number in the parsed model
};

class NodeContext {
 public:
  // `values` are those of the parsed model, by number. Where one of the node's inputs is on the node's device (not a
  // small host-side integer), all are taken there.
  NodeContext(const ParsedModel& parsed, const Node& node, std::span<const Tensor> values);

  const Node& node() const { return node_; }
  int64_t version() const { return node_.version; }
  // Where the node's results live.
  Device device() const { return device_; }

  size_t input_count() const { return node_.inputs.size(); }
  size_t output_count() const { return node_.outputs.size(); }
  bool has(size_t i) const { return i < node_.inputs.size() && node_.inputs[i] >= 0; }
  bool wants(size_t i) const { return i < node_.outputs.size() && node_.outputs[i] >= 0; }

  // Input i on the node's device. Errors: the node has no such input.
  const Tensor& input(size_t i);
  Tensor optional(size_t i) { return has(i) ? input(i) : Tensor(); }
  // All inputs from `first` on.
  TensorList inputs(size_t first = 0);
  const Dims& dims(size_t i) const { return raw(i).dims(); }
  DType dtype(size_t i) const { return raw(i).dtype(); }

  // Errors: an input of an element type that ONNX does not let the operator take.
  void check_types() const;

  // The product of the dims of input i from axis `first` up to `last`. Errors: it does not fit 63 bits (beside a dim of
  // 0 others may be of any size).
  int64_t product(size_t i, int64_t first, int64_t last) const;

  // The elements of an integer input, of at most kHostElements. Throws UnknownValue while they are not known.
  std::vector<int64_t> ints(size_t i) const;
  // The one element of an input.
  Scalar scalar(size_t i) const;
  std::vector<double> numbers(size_t i) const;

  // Attributes. Errors: one of another kind than asked for.
  int64_t integer(std::string_view name, int64_t initial) const;
  bool flag(std::string_view name, bool initial) const { return integer(name, initial ? 1 : 0) != 0; }
  double number(std::string_view name, double initial) const;
  std::string text(std::string_view name, std::string_view initial) const;
  // Absent: no value.
  std::optional<std::vector<int64_t>> integers(std::string_view name) const;
  const Attribute* find(std::string_view name) const;
  const Attribute& require(std::string_view name, Attribute::Kind kind) const;

  // The `axis` attribute, from 0 to rank - 1 (to rank where `end` is given).
  int64_t axis(int64_t initial, int32_t rank, bool end = false) const;
  // Negative axes counted from the end. Errors: outside [-rank, rank).
  int64_t normalise_axis(int64_t axis, int64_t rank) const;
  // Axes from the attribute `axes` before opset `since_input`, from input `index` from then on; no value where absent.
  std::optional<std::vector<int64_t>> axes(size_t index, int64_t since_input) const;

  // 0, 1, .. count - 1, in i64 on the node's device. Errors: unsupported, more than 2^24 of them.
  Tensor positions(int64_t count) const;
  // A one-dimensional i64 tensor on the host.
  static Tensor host_ints(std::span<const int64_t> values);

  // `reason` completes "node 3 (/x): ".
  [[noreturn]] void unsupported(const std::string& reason) const;
  [[noreturn]] void invalid(const std::string& what) const;

 private:
  const Tensor& raw(size_t i) const;
  const Tensor& known(size_t i) const;
  const Attribute* find(std::string_view name, Attribute::Kind kind) const;

  const Node& node_;
  std::span<const Tensor> values_;
  Device device_;
  std::vector<Tensor> moved_;
};

}  // namespace tenon::onnx
