#include "sdk/onnx/importer/value_info.h"

#include <algorithm>
#include <cctype>

#include "primitives/text/format.h"
#include "sdk/onnx/importer/parsed_model.h"
#include "sdk/onnx/tensors/tensor_data.h"

namespace tenon::onnx {
namespace {

namespace proto = onnx_proto;

// The value that PaddlePaddle writes for a dim of unknown size.
constexpr int64_t kUnknownDim = -1;

// False for "?", "*" and "-1", which exporters write for any size: two such dims need not be equal.
bool is_name(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalpha(c) != 0 || c == '_' || c >= 0x80; });
}

// The type as ONNX's tools write it.
std::string type_text(const proto::TypeProto* type) {
  if (type == nullptr) return "?";
  if (type->tensor_type) return fmt::format("tensor({})", onnx_type_name(type->tensor_type->elem_type));
  if (type->sequence_type) return fmt::format("seq({})", type_text(type->sequence_type->elem_type.get()));
  if (type->optional_type) return fmt::format("optional({})", type_text(type->optional_type->elem_type.get()));
  if (!type->map_type) return "?";
  return fmt::format("map({},{})", onnx_type_name(type->map_type->key_type),
                     type_text(type->map_type->value_type.get()));
}

std::string read_tensor_type(const proto::TypeProto_Tensor& tensor, const std::string& of, ValueInfo* info) {
  info->kind = tensor.elem_type == proto::TensorProto::DataType_STRING ? Value::Kind::strings : Value::Kind::tensor;
  info->dtype = dtype_of_onnx(tensor.elem_type);
  if (info->kind == Value::Kind::tensor && info->dtype == DType::none)
    return fmt::format("{} holds {}, an element type that Tenon does not have.", of, onnx_type_name(tensor.elem_type));
  if (!tensor.shape) return {};
  info->has_shape = true;
  if (tensor.shape->dim.size() > EP_MAX_RANK)
    return fmt::format("{} has rank {}; at most {} is possible.", of, tensor.shape->dim.size(), EP_MAX_RANK);
  for (const proto::TensorShapeProto_Dimension& dim : tensor.shape->dim) {
    const bool fixed = dim.has(proto::TensorShapeProto_Dimension::k_dim_value) && dim.dim_value != kUnknownDim;
    if (fixed && dim.dim_value < 0) malformed(fmt::format("'{}' has the negative dim {}", info->name, dim.dim_value));
    info->dims.push_back(
        {fixed ? dim.dim_value : -1, fixed || !is_name(dim.dim_param) ? "" : std::string(dim.dim_param)});
  }
  return {};
}

std::string read_type(const proto::TypeProto& type, const std::string& of, ValueInfo* info) {
  if (type.tensor_type) return read_tensor_type(*type.tensor_type, of, info);
  if (type.sequence_type) {
    info->kind = Value::Kind::sequence;
    return {};
  }
  if (type.optional_type && type.optional_type->elem_type && !info->optional) {
    info->optional = true;
    return read_type(*type.optional_type->elem_type, of, info);
  }
  if (type.map_type) {
    info->kind = Value::Kind::map;
    const bool numbers = type.map_type->value_type && type.map_type->value_type->tensor_type;
    if (numbers) info->dtype = dtype_of_onnx(type.map_type->value_type->tensor_type->elem_type);
    return {};
  }
  const char* is = type.sparse_tensor_type ? "sparse tensor" : "value without a type";
  return fmt::format("{} is a {}, which Tenon does not have.", of, is);
}

}  // namespace

std::string read_value_info(const proto::ValueInfoProto& value, const char* what, ValueInfo* info) {
  info->name = std::string(value.name);
  info->onnx_type = type_text(value.type.get());
  const std::string of = fmt::format("{} '{}'", what, value.name);
  return value.type ? read_type(*value.type, of, info) : fmt::format("{} has no type.", of);
}

}  // namespace tenon::onnx
