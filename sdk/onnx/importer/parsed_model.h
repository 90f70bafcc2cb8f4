// ParsedModel: a model file as checked nodes over numbered values, with its weights as tensors. Immutable after
// reading.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/labels.h"
#include "core/tensor/tensor.h"
#include "sdk/onnx/onnx.h"
#include "sdk/onnx/tensors/tensor_data.h"

namespace tenon::onnx {

struct Schema;
struct Translator;

struct Attribute {
  enum class Kind : uint8_t { number, integer, text, numbers, integers, texts, tensor, other };
  Kind kind = Kind::other;
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  Tensor tensor;  // on the host
};

// "a float" or "a list of ints", for messages.
std::string_view attribute_kind_name(Attribute::Kind kind);

struct Node {
  int32_t position = 0;  // in the file
  std::string name, op_type, domain;
  int64_t version = 0;           // opset version of the node's domain
  std::vector<int32_t> inputs;   // value numbers; -1: absent
  std::vector<int32_t> outputs;  // value numbers; -1: nobody wants the output
  std::map<std::string, Attribute, std::less<>> attributes;
  const Schema* schema = nullptr;          // NULL: unknown operator
  const Translator* translator = nullptr;  // NULL: not translated
};

// "node 14 (/encoder/MatMul)"
std::string label(const Node& node);
// A label that always names the operator: "node 14 (MatMul)" for a node without a name.
std::string label_with_operator(const Node& node);

struct ParsedModel {
  std::vector<std::string> names;   // by value
  std::vector<Tensor> constants;    // by value: weights, and results of weights alone; else undefined
  std::vector<int32_t> drop_after;  // by value: the last node that reads it; -1: never dropped
  std::vector<Node> nodes;          // in an order in which they can run
  Labels labels;                    // by node, from name_nodes
  std::vector<int32_t> input_values, output_values;
  std::vector<ValueInfo> inputs, outputs;
  std::map<int32_t, ValueInfo> declared;  // by value: declared inputs and outputs of the file
  ModelInfo info;
  Device device;
  Precision precision = Precision::stated;

  bool is_constant(int32_t value) const { return constants[static_cast<size_t>(value)].defined(); }
};

// Integer tensors of up to so many elements stay on the host, because they are usually shapes, axes or indices.
constexpr int64_t kHostElements = 1024;
bool stays_on_host(DType dtype, int64_t elements);

// Throws invalid_argument: "The model is malformed: <what>."
[[noreturn]] void malformed(const std::string& what);

// Decodes and checks `bytes`, which are those of `files.model` if that is given. A well-formed part that cannot run (an
// operator without a translator, a value that is no tensor) adds a line to `refusals`. With refusals, the parsed model
// only serves to find more of them.
ParsedModel parse_model(std::string_view bytes, TensorFiles files, Device device, std::vector<std::string>* refusals);

// Checks the element types of inputs and outputs, as far as they are known without running: inputs against ONNX's rules
// for the operator, outputs against their declared types. Errors: invalid_argument.
void check_types(const ParsedModel& parsed);

// Checks that output i of the parsed model has the declared type. `made` is its type; none: not known.
void check_output_type(const ParsedModel& parsed, size_t i, DType made);

// Fills labels for the present nodes.
void name_nodes(ParsedModel* parsed);

// Fills drop_after for the present nodes.
void find_last_uses(ParsedModel* parsed);

}  // namespace tenon::onnx
