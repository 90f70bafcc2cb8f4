// Schema: what ONNX rules about one operator, from one version on: its inputs, outputs, element types and attributes.
// The rows stand in operators.def, which generate.py writes from onnx itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "primitives/dtype/dtype.h"
#include "sdk/onnx/importer/parsed_model.h"

namespace tenon::onnx {

// A set of element types: bit N stands for the dtype of id N.
using DTypeSet = uint32_t;

struct ParameterRule {
  std::string_view name;
  std::string_view letter;  // inputs and outputs of one letter have one type; empty: `types` alone counts
  DTypeSet types = 0;
  bool optional = false, many = false;
};

struct AttributeRule {
  std::string_view name;
  Attribute::Kind kind = Attribute::Kind::other;
  bool required = false;
  std::vector<std::string_view> values;  // that it may have; empty: any
};

struct Schema {
  std::string_view op_type;
  int64_t since = 0;
  std::vector<ParameterRule> inputs, outputs;
  std::vector<AttributeRule> attributes;
};

// The schema of the operator for a version of ai.onnx: the youngest that is not younger. Null: there is none.
const Schema* find_schema(std::string_view op_type, int64_t version);

// What the node breaks by its attributes and by how many inputs and outputs it has, as a sentence without its end;
// empty if nothing.
std::string broken_form(const Schema& schema, const Node& node);

// The same for the element types of its inputs; none: not known yet.
std::string broken_types(const Schema& schema, const Node& node, std::span<const DType> inputs);

// The type of output i; none where it does not follow from the types of the inputs and the attributes.
DType output_type(const Schema& schema, const Node& node, std::span<const DType> inputs, size_t i);

}  // namespace tenon::onnx
