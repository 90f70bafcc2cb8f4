// Schema: ONNX's rules for one operator from one version on: its inputs, outputs, element types and attributes. The
// rows are in operators.def, which generate.py writes from the package onnx, and in microsoft.def.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "primitives/dtype/dtype.h"
#include "sdk/onnx/importer/parsed_model.h"

namespace tenon::onnx {

// The type of a value in the rules: the id of its dtype, or one of the kinds below. 0: not known.
using TypeId = int32_t;
constexpr TypeId kStringType = 48, kSequenceType = 49, kOptionalType = 50, kMapType = 51;
constexpr TypeId type_id(DType dtype) { return static_cast<TypeId>(dtype); }
// The dtype of a numeric type; DType::none for other types.
constexpr DType dtype_of_type(TypeId type) { return type < kStringType ? static_cast<DType>(type) : DType::none; }
// "f32", "string", "a sequence"
std::string_view type_name(TypeId type);
// A set of types: bit N stands for type N.
using TypeSet = uint64_t;

struct ParameterRule {
  std::string_view name;
  std::string_view letter;  // inputs and outputs with the same letter have the same type; empty: only `types` counts
  TypeSet types = 0;
  bool optional = false;
  bool many = false;   // it may occur any number of times
  bool mixed = false;  // repeated values may differ in type
};

struct AttributeRule {
  std::string_view name;
  Attribute::Kind kind = Attribute::Kind::other;
  bool required = false;
  std::vector<std::string_view> values;  // allowed values; empty: any
};

struct Schema {
  std::string_view domain, op_type;
  int64_t since = 0;
  std::vector<ParameterRule> inputs, outputs;
  std::vector<AttributeRule> attributes;
};

// The schema for a version of a domain (empty: ai.onnx): the newest one up to `version`. NULL if there is none.
const Schema* find_schema(std::string_view domain, std::string_view op_type, int64_t version);

// A sentence, without its full stop, about the rule for attributes or the number of inputs and outputs that the node
// breaks. Empty if it breaks none.
std::string broken_form(const Schema& schema, const Node& node);

// Like the function above, for the rules about element types of inputs. A type of 0 is not known yet.
std::string broken_types(const Schema& schema, const Node& node, std::span<const TypeId> inputs);

// The type of output i; 0 if the types of the inputs and the attributes do not decide it.
TypeId output_type(const Schema& schema, const Node& node, std::span<const TypeId> inputs, size_t i);

}  // namespace tenon::onnx
