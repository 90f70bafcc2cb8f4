#include "core/ops/conversions.h"

#include <algorithm>

#include "primitives/text/format.h"

namespace tenon {
namespace {

struct DTypeName {
  std::string_view name;
  DType dtype;
};
// PyTorch's other names of dtypes, besides the long ones.
constexpr DTypeName kNames[] = {{"half", DType::f16},  {"float", DType::f32}, {"double", DType::f64},
                                {"short", DType::i16}, {"int", DType::i32},   {"long", DType::i64}};

// The number in a tensor of rank 0; null for other values. A tensor that wants a gradient is excluded, since the
// gradient would be lost.
const Tensor* number_in(const Value& value) {
  const Tensor* tensor = value.tensor();
  return tensor != nullptr && tensor->defined() && tensor->rank() == 0 && !tensor->requires_grad() ? tensor : nullptr;
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

std::optional<Value> floats_as_tensor(const Parameter& parameter, const Value& value) {
  const Value::Floats* floats = value.get<Value::Floats>();
  if (floats == nullptr || !takes(parameter, kAcceptsTensor)) return std::nullopt;
  return Value(Tensor::from(std::vector<float>(floats->begin(), floats->end())));
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
    {"str", "device", "to(x, 'cpu')", "to(x, \"cpu\")", text_as_device},
    {"list of ints", "Tensor of positions", "index_select(x, 0, [1, 0])", "index_select(x, 0, Tensor::from({1, 0}))",
     ints_as_index},
    {"list of floats", "Tensor of f32", "mul(x, [0.5, -1.0, 2.0])", "mul(x, Tensor::from({0.5, -1.0, 2.0}))",
     floats_as_tensor},
    {"Generator", "generator of random numbers", "rand([3], generator=g)", "rand({3}, DType::f32, {}, &g)", nullptr},
    {"ints one after the other", "list of ints", "permute(x, 1, 0)", "permute(x, {1, 0})", nullptr},
    {"Tensors one after the other", "list of Tensors", "einsum('ij,ij->i', x, x)", "einsum(\"ij,ij->i\", {x, x})",
     nullptr},
    {"None", "dtype or device that has a default", "zeros([2], dtype=None, device=None)", "zeros({2})", nullptr},
    {"number", "Tensor, where another argument is a Tensor", "clamp(x, 0, t)", "clamp(x, 0, t)", nullptr},
    {"Tensor of rank 0 on the host", "Tensor on the device of the others", "add(x, s)", "add(x, s)", nullptr},
};

}  // namespace

std::span<const Conversion> conversions() { return kConversions; }

std::optional<Value> converted(const Parameter& parameter, const Value& value) {
  for (const Conversion& row : kConversions) {
    if (row.convert == nullptr) continue;
    if (std::optional<Value> found = row.convert(parameter, value)) return found;
  }
  return std::nullopt;
}

std::string dtype_long_name(DType dtype) {
  const std::string_view name = dtype_name(dtype);
  if (name == "bool") return "bool";
  const size_t digits = name.find_first_of("0123456789");
  const std::string_view kind = name.substr(0, digits), rest = name.substr(digits);
  const std::string_view word = kind == "i" ? "int" : kind == "u" ? "uint" : kind == "bf" ? "bfloat" : "float";
  const size_t exponent = rest.find('e');
  if (exponent == std::string_view::npos) return fmt::format("{}{}", word, rest);
  return fmt::format("{}{}_{}", word, rest.substr(0, exponent), rest.substr(exponent));
}

std::optional<DType> dtype_of_text(std::string_view name) {
  if (const std::optional<DType> dtype = dtype_from_name(name)) return dtype;
  for (int32_t id = 1; dtype_info(static_cast<DType>(id)).bits != 0; ++id) {
    if (dtype_long_name(static_cast<DType>(id)) == name) return static_cast<DType>(id);
  }
  const auto* found =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const DTypeName& row) { return row.name == name; });
  return found == std::end(kNames) ? std::nullopt : std::optional<DType>(found->dtype);
}

}  // namespace tenon
