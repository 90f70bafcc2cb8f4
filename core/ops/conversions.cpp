#include "core/ops/conversions.h"

#include <algorithm>

namespace tenon {
namespace {

struct DTypeName {
  std::string_view name;
  DType dtype;
};
constexpr DTypeName kNames[] = {{"float16", DType::f16},   {"half", DType::f16},    {"float32", DType::f32},
                                {"float", DType::f32},     {"float64", DType::f64}, {"double", DType::f64},
                                {"bfloat16", DType::bf16}, {"int8", DType::i8},     {"int16", DType::i16},
                                {"short", DType::i16},     {"int32", DType::i32},   {"int", DType::i32},
                                {"int64", DType::i64},     {"long", DType::i64},    {"uint8", DType::u8},
                                {"uint16", DType::u16},    {"uint32", DType::u32},  {"uint64", DType::u64}};

// The number that a tensor of rank 0 holds; null for other values.
const Tensor* number_in(const Value& value) {
  const Tensor* tensor = value.tensor();
  return tensor != nullptr && tensor->defined() && tensor->rank() == 0 ? tensor : nullptr;
}

bool takes(const Parameter& parameter, uint16_t kinds) { return (parameter.accepts & kinds) != 0; }

std::optional<Value> tensor_as_int(const Parameter& parameter, const Value& value) {
  const Tensor* tensor = number_in(value);
  if (tensor == nullptr || !is_integer(tensor->dtype()) || !takes(parameter, kAcceptsInt)) return std::nullopt;
  return Value(tensor->item().to_int());
}

std::optional<Value> tensor_as_float(const Parameter& parameter, const Value& value) {
  const Tensor* tensor = number_in(value);
  if (tensor == nullptr || tensor->dtype() == DType::boolean || !takes(parameter, kAcceptsFloat)) return std::nullopt;
  return Value(tensor->item().to_double());
}

std::optional<Value> tensor_as_bool(const Parameter& parameter, const Value& value) {
  const Tensor* tensor = number_in(value);
  if (tensor == nullptr || tensor->dtype() != DType::boolean || !takes(parameter, kAcceptsBool)) return std::nullopt;
  return Value(tensor->item().to<bool>());
}

std::optional<Value> text_as_dtype(const Parameter& parameter, const Value& value) {
  const std::string* text = value.get<std::string>();
  if (text == nullptr || !takes(parameter, kAcceptsDtype)) return std::nullopt;
  const std::optional<DType> dtype = dtype_of_text(*text);
  return dtype ? std::optional<Value>(*dtype) : std::nullopt;
}

std::optional<Value> text_as_device(const Parameter& parameter, const Value& value) {
  const std::string* text = value.get<std::string>();
  if (text == nullptr || !takes(parameter, kAcceptsDevice)) return std::nullopt;
  return Value(Device(*text));
}

std::optional<Value> ints_as_index(const Parameter& parameter, const Value& value) {
  const Value::Ints* ints = value.get<Value::Ints>();
  const bool is_index = parameter.name == "index" || parameter.name == "indices";
  if (ints == nullptr || !is_index || !takes(parameter, kAcceptsTensor)) return std::nullopt;
  return Value(Tensor::from(*ints));
}

std::optional<Value> tensor_as_list(const Parameter& parameter, const Value& value) {
  const Tensor* tensor = value.tensor();
  if (tensor == nullptr || !tensor->defined() || tensor->rank() > 1 || !is_integer(tensor->dtype()) ||
      !takes(parameter, kAcceptsInts)) {
    return std::nullopt;
  }
  Value::Ints numbers;
  if (tensor->rank() == 0) return Value(Value::Ints{tensor->item().to_int()});
  for (const Tensor& each : *tensor) numbers.push_back(each.item().to_int());
  return Value(std::move(numbers));
}

constexpr Conversion kConversions[] = {
    {"Tensor of rank 0 that holds an integer", "int", "select(x, 0, i)", "select(x, 0, i.item<int64_t>())",
     tensor_as_int},
    {"Tensor of rank 0", "float or Scalar", "leaky_relu(x, slope)", "leaky_relu(x, slope.item<double>())",
     tensor_as_float},
    {"Tensor of rank 0 that holds a bool", "bool", "sum(x, 0, keep)", "sum(x, 0, keep.item<bool>())", tensor_as_bool},
    {"Tensor of integers of rank 0 or 1", "list of ints", "reshape(x, shape)", "reshape(x, shape.to_host<int64_t>())",
     tensor_as_list},
    {"str", "dtype", "cast(x, 'float64')", "cast(x, DType::f64)", text_as_dtype},
    {"str", "device", "to(x, 'cpu')", "to(x, Device(\"cpu\"))", text_as_device},
    {"list of ints", "Tensor of positions", "index_select(x, 0, [2, 0])", "index_select(x, 0, Tensor::from({2, 0}))",
     ints_as_index},
};

}  // namespace

std::span<const Conversion> conversions() { return kConversions; }

std::optional<Value> converted(const Parameter& parameter, const Value& value) {
  for (const Conversion& row : kConversions) {
    if (std::optional<Value> found = row.convert(parameter, value)) return found;
  }
  return std::nullopt;
}

std::optional<DType> dtype_of_text(std::string_view name) {
  if (const std::optional<DType> dtype = dtype_from_name(name)) return dtype;
  const auto* found =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const DTypeName& row) { return row.name == name; });
  return found == std::end(kNames) ? std::nullopt : std::optional<DType>(found->dtype);
}

}  // namespace tenon
