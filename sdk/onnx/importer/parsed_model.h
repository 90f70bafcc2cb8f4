// ParsedModel: a model file turned into nodes over numbered values, checked, with its weights as tensors. Immutable
// once read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"
#include "sdk/onnx/onnx.h"

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

// "a float", "a list of ints": for messages.
std::string_view attribute_kind_name(Attribute::Kind kind);

// What importer/fuse has a product or convolution do besides. It is no attribute: no file can set it.
struct Epilogue {
  std::string_view activation;  // "relu", "clamp"; empty: none
  double low = 0, high = 0;     // of clamp
};

struct Node {
  int32_t position = 0;  // in the file
  std::string name, op_type, domain;
  int64_t version = 0;           // opset version of its domain
  std::vector<int32_t> inputs;   // value numbers, -1 absent
  std::vector<int32_t> outputs;  // value numbers, -1 not wanted
  std::map<std::string, Attribute, std::less<>> attributes;
  Epilogue epilogue;
  const Schema* schema = nullptr;          // null: the operator is not known, or importer/fuse made the node
  const Translator* translator = nullptr;  // null: there is none
};

// "node 14 (/encoder/MatMul)"
std::string label(const Node& node);
// The same for texts that do not say the operator besides: without a name "node 14 (MatMul)".
std::string label_with_operator(const Node& node);

struct ParsedModel {
  std::vector<std::string> names;   // of values
  std::vector<Tensor> constants;    // by value: weights, and what follows from weights alone; else undefined
  std::vector<int32_t> drop_after;  // by value: the last node that reads it; -1 never to be dropped
  std::vector<Node> nodes;          // in an order that can be run
  std::vector<int32_t> input_values, output_values;
  std::vector<ValueInfo> inputs, outputs;
  std::map<int32_t, ValueInfo> declared;  // by value: inputs and outputs of the file
  ModelInfo info;
  Device device;

  bool is_constant(int32_t value) const { return constants[static_cast<size_t>(value)].defined(); }
};

// Integers of up to this many elements stay on the host: they are shapes, axes and indices more often than data.
constexpr int64_t kHostElements = 1024;
bool stays_on_host(DType dtype, int64_t elements);

// Throws invalid_argument: "The model is malformed: <what>."
[[noreturn]] void malformed(const std::string& what);

// Decodes and checks `bytes`. What is well-formed but cannot be run (an operator that is not translated, a value that
// is no tensor) is appended to `refusals`, a line each; the result is then good for finding more of them only.
ParsedModel parse_model(std::string_view bytes, const std::string& external_root, Device device,
                        std::vector<std::string>* refusals);

// Refuses nodes whose inputs, as far as their element types are known without running, are not of the types that ONNX
// lets their operators take, and outputs that are not of their declared type. Errors: invalid_argument.
void check_types(const ParsedModel& parsed);

// Refuses output i if it is of the type `made` and the file declares another; none: its type is not known.
void check_output_type(const ParsedModel& parsed, size_t i, DType made);

// Fills drop_after from the nodes as they are.
void find_last_uses(ParsedModel* parsed);

}  // namespace tenon::onnx
