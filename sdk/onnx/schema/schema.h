// Schema: ONNX's rules for one operator from one version on: its inputs, outputs, element types and attributes. The
// rows are in operators.def, which generate.py writes from the package onnx.
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
  std::string_view letter;  // inputs and outputs of one letter share one type; empty: `types` alone counts
  DTypeSet types = 0;
  bool optional = false, many = false;
};

struct AttributeRule {
  std::string_view name;
  Attribute::Kind kind = Attribute::Kind::other;
  bool required = false;
  std::vector<std::string_view> values;  // allowed values; empty: any
};

struct Schema {
  std::string_view op_type;
  int64_t since = 0;
  std::vector<ParameterRule> inputs, outputs;
  std::vector<AttributeRule> attributes;
};

// The schema for a version of ai.onnx: the newest one that is not newer than `version`. NULL if there is none.
const Schema* find_schema(std::string_view op_type, int64_t version);

// The rule about attributes or about the number of inputs and outputs that the node breaks, as a sentence without its
// end. Empty if it breaks none.
std::string broken_form(const Schema& schema, const Node& node);

// The rule about element types of inputs that the node breaks. A type of `none` is not known yet.
std::string broken_types(const Schema& schema, const Node& node, std::span<const DType> inputs);

// The type of output i; none if it does not follow from the types of the inputs and the attributes.
DType output_type(const Schema& schema, const Node& node, std::span<const DType> inputs, size_t i);

}  // namespace tenon::onnx
