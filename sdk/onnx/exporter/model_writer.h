// ModelWriter: the nodes and initialisers of a model that is being written, and its sizes as values.
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

// The attributes of a node: name and value.
using WrittenAttribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<std::string>>;
using WrittenAttributes = std::vector<std::pair<std::string, WrittenAttribute>>;

struct WrittenNode {
  std::string op;
  std::vector<std::string> inputs, outputs;  // names; an empty one is absent
  WrittenAttributes attributes;
};

struct Initializer {
  std::string name;
  Tensor tensor;
};

class ModelWriter {
 public:
  explicit ModelWriter(compilation::ProgramSizes& sizes) : of_program_(sizes) {}

  // Makes new_name() and constant() avoid `name`.
  void reserve(const std::string& name) { taken_.insert({name, 0}); }
  // A name that is not in use: `like`, or "relu_2" if "relu" is in use.
  std::string new_name(const std::string& like);
  // Adds an initialiser called `name`, or new_name(name) if the name is in use. Returns its name.
  std::string constant(const Tensor& tensor, const std::string& name);
  // A constant of rank 0.
  std::string number(const Scalar& value, DType dtype);
  std::string integer(int64_t value) { return number(Scalar(value), DType::i64); }
  // An i64 constant of rank 1.
  std::string integers(const std::vector<int64_t>& values);

  // Appends a node with `count` outputs and returns their names.
  std::vector<std::string> nodes(std::string_view op, std::vector<std::string> inputs, WrittenAttributes attributes,
                                 size_t count);
  // Like `nodes`, for one output.
  std::string node(std::string_view op, std::vector<std::string> inputs, WrittenAttributes attributes = {}) {
    return nodes(op, std::move(inputs), std::move(attributes), 1)[0];
  }

  // Notes that axis `axis` of the input `input` has the size `symbol`.
  void add_symbol(SymDim symbol, const std::string& input, int64_t axis);
  // One or several sizes as an i64 tensor of rank 1.
  std::string size(SymDim size);
  std::string shape(const SymDims& sizes);

  compilation::ProgramSizes& sizes() { return of_program_; }
  std::vector<WrittenNode>& written() { return nodes_; }
  const std::vector<Initializer>& initializers() const { return initializers_; }

 private:
  std::string expression(SymDim size);
  std::string sum(const symbolic::Polynomial& terms);

  compilation::ProgramSizes& of_program_;
  std::vector<WrittenNode> nodes_;
  std::vector<Initializer> initializers_;
  std::map<std::string, int> taken_;  // by name: the last suffix in use
  std::map<std::tuple<DType, DType, uint64_t>, std::string> numbers_;
  std::map<std::vector<int64_t>, std::string> integers_;
  std::map<uint64_t, std::pair<std::string, int64_t>> symbols_;  // by word: input and axis
  std::map<uint64_t, std::string> sizes_;                        // by word: sizes that are already written
};

}  // namespace tenon::onnx
