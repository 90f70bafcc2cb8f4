// NodeWriter: a node of a program, for the row that writes it as nodes of a model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/graph.h"
#include "sdk/onnx/exporter/model_writer.h"

namespace tenon::onnx {

// A value of a program, as the model has it.
struct Operand {
  std::string name;  // empty: absent
  DType dtype = DType::none;
  SymDims dims;
};

// Why a node is not written, as the end of the sentence "gather: ...".
struct NotWritten {
  std::string why;
};

class NodeWriter {
 public:
  // `results` have no names yet.
  NodeWriter(ModelWriter& model, const graph::Node& node, std::vector<Operand> inputs, std::vector<Operand> results)
      : model_(model), node_(node), inputs_(std::move(inputs)), results_(std::move(results)) {}

  size_t count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && !inputs_[i].name.empty(); }
  // Input `i`: the name of the tensor, or of the number that stands for it; empty if there is neither.
  std::string in(size_t i);
  // The names of all inputs.
  std::vector<std::string> all();
  const Operand& input(size_t i) const { return inputs_[i]; }
  DType dtype(size_t i = 0) const { return inputs_[i].dtype; }
  int64_t rank(size_t i = 0) const { return inputs_[i].dims.rank(); }
  // The dtype in which an elementwise op computes: that of its last tensor.
  DType computed() const;
  template <class T>
  const T& attributes() const {
    return node_.attributes_as<T>();
  }
  // A launch scalar. One that is a size is the number of the examples from then on.
  Scalar scalar(size_t i) const;
  // `field`, an i64 of the attributes, which may be a size.
  SymDim size_of(const int64_t& field) const;
  // `field` as a number: a size is that of the examples from then on.
  int64_t number_of(const int64_t& field) const;
  const Operand& result(size_t i = 0) const { return results_[i]; }
  size_t result_count() const { return results_.size(); }
  // Sizes as short as they are known.
  SymDims dims(const Operand& operand) const;
  // The sizes as numbers: those of the examples from then on.
  std::vector<int64_t> fixed_dims(const Operand& operand) const;

  ModelWriter& model() { return model_; }
  // A node of one output.
  std::string add(std::string_view op, std::vector<std::string> inputs, WrittenAttributes attributes = {}) {
    return model_.node(op, std::move(inputs), std::move(attributes));
  }
  // A number of the dtype in which the op computes.
  std::string number(double value) { return model_.number(Scalar(value), computed()); }
  std::string cast(const std::string& name, DType from, DType to);

  // The result number `i` is the value `name`.
  void give(std::string name, size_t i = 0) { results_[i].name = std::move(name); }
  [[noreturn]] void refuse(std::string why) const { throw NotWritten{std::move(why)}; }

 private:
  ModelWriter& model_;
  const graph::Node& node_;
  std::vector<Operand> inputs_, results_;
};

}  // namespace tenon::onnx
