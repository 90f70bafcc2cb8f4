// NodeWriter: what a row sees of a node of the program while it writes nodes of the model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "sdk/onnx/exporter/model_writer.h"

namespace tenon::onnx {

// A value of a program and its name in the model.
struct Operand {
  std::string name;  // empty: absent
  DType dtype = DType::none;
  SymDims dims;
};

// Thrown for a node that cannot be written. The text completes the sentence "gather: ...".
struct NotWritten {
  std::string why;
};

class NodeWriter {
 public:
  // The entries of `results` have no names yet.
  NodeWriter(ModelWriter& model, const graph::Node& node, std::vector<Operand> inputs, std::vector<Operand> results)
      : model_(model), node_(node), inputs_(std::move(inputs)), results_(std::move(results)) {}

  size_t count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && !inputs_[i].name.empty(); }
  // Input `i`: the name of the tensor, or of a constant for a number; empty if the input is absent.
  std::string in(size_t i);
  // The names of all inputs.
  std::vector<std::string> all();
  const Operand& input(size_t i) const { return inputs_[i]; }
  DType dtype(size_t i = 0) const { return inputs_[i].dtype; }
  int64_t rank(size_t i = 0) const { return inputs_[i].dims.rank(); }
  // The dtype in which an element-wise op computes: the dtype of its last tensor.
  DType computed() const;
  template <class T>
  const T& attributes() const {
    return node_.attributes_as<T>();
  }
  // Launch scalar `i`. If it is a size, the model fixes this size to the number of the examples.
  Scalar scalar(size_t i) const;
  // `field`, an i64 attribute, which may be a size.
  SymDim size_of(const int64_t& field) const;
  // `field` as a number. If it is a size, the model fixes it to the number of the examples.
  int64_t number_of(const int64_t& field) const;
  const Operand& result(size_t i = 0) const { return results_[i]; }
  size_t result_count() const { return results_.size(); }
  // The sizes in their simplest known form.
  SymDims dims(const Operand& operand) const;
  // The sizes as numbers: the model fixes each of them to the number of the examples.
  std::vector<int64_t> fixed_dims(const Operand& operand) const;

  ModelWriter& model() { return model_; }
  // Appends a node with one output.
  std::string add(std::string_view op, std::vector<std::string> inputs, WrittenAttributes attributes = {}) {
    return model_.node(op, std::move(inputs), std::move(attributes));
  }
  // A number of the dtype in which the op computes.
  std::string number(double value) { return model_.number(Scalar(value), computed()); }
  std::string cast(const std::string& name, DType from, DType to);

  // Sets the name of result `i`.
  void give(std::string name, size_t i = 0) { results_[i].name = std::move(name); }
  [[noreturn]] void refuse(std::string why) const { throw NotWritten{std::move(why)}; }

 private:
  ModelWriter& model_;
  const graph::Node& node_;
  std::vector<Operand> inputs_, results_;
};

}  // namespace tenon::onnx
