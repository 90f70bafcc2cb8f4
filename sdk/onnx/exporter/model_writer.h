// ModelWriter: the nodes and initialisers of a model that is being written, and sizes of a program as values of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/compile/program.h"
#include "core/tensor/tensor.h"

namespace tenon::onnx {

// The attributes of a node by name, and what they are.
using WrittenAttribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<std::string>>;
using WrittenAttributes = std::vector<std::pair<std::string, WrittenAttribute>>;

struct WrittenNode {
  std::string op;
  std::vector<std::string> inputs, outputs;  // names; empty: absent
  WrittenAttributes attributes;
};

struct Initializer {
  std::string name;
  Tensor tensor;
};

class ModelWriter {
 public:
  explicit ModelWriter(lazy::ProgramSizes& sizes) : of_program_(sizes) {}

  // Nobody else gets `name`.
  void reserve(const std::string& name) { taken_.insert({name, 0}); }
  // "relu_2": `like`, or the like of it that nobody has yet.
  std::string new_name(const std::string& like);
  // An initialiser of the name `name`, or the like of it.
  std::string constant(const Tensor& tensor, const std::string& name);
  // A constant of rank 0.
  std::string number(const Scalar& value, DType dtype);
  std::string integer(int64_t value) { return number(Scalar(value), DType::i64); }
  // An i64 constant of rank 1.
  std::string integers(const std::vector<int64_t>& values);

  // Appends a node with `count` outputs, and gives their names.
  std::vector<std::string> nodes(std::string_view op, std::vector<std::string> inputs, WrittenAttributes attributes,
                                 size_t count);
  // The same of one output.
  std::string node(std::string_view op, std::vector<std::string> inputs, WrittenAttributes attributes = {}) {
    return nodes(op, std::move(inputs), std::move(attributes), 1)[0];
  }

  // Axis `axis` of the input `input` has the size `symbol`.
  void add_symbol(SymDim symbol, const std::string& input, int64_t axis);
  // A size, or several, as an i64 tensor of rank 1.
  std::string size(SymDim size);
  std::string shape(const SymDims& sizes);

  lazy::ProgramSizes& sizes() { return of_program_; }
  std::vector<WrittenNode>& written() { return nodes_; }
  const std::vector<Initializer>& initializers() const { return initializers_; }

 private:
  std::string expression(SymDim size);
  std::string sum(const symbolic::Polynomial& terms);

  lazy::ProgramSizes& of_program_;
  std::vector<WrittenNode> nodes_;
  std::vector<Initializer> initializers_;
  std::map<std::string, int> taken_;  // with the number of the last like of each
  std::map<std::tuple<DType, DType, uint64_t>, std::string> numbers_;
  std::map<std::vector<int64_t>, std::string> integers_;
  std::map<uint64_t, std::pair<std::string, int64_t>> symbols_;  // by word: input and axis
  std::map<uint64_t, std::string> sizes_;                        // by word: those that are there
};

}  // namespace tenon::onnx
