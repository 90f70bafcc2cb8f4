#include "benchmarks/peers/torch_op.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/jit/runtime/operator.h>
#include <torch/version.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

namespace tenon::bench {
namespace {

using c10::IValue;
using c10::TypeKind;
using nlohmann::json;
using Stack = std::vector<IValue>;

at::ScalarType dtype_of(const std::string& name) {
  static const std::map<std::string, at::ScalarType> types = {
      {"f64", at::kDouble}, {"f32", at::kFloat},  {"f16", at::kHalf},  {"bf16", at::kBFloat16}, {"i8", at::kChar},
      {"i16", at::kShort},  {"i32", at::kInt},    {"i64", at::kLong},  {"u8", at::kByte},       {"bool", at::kBool},
      {"u16", at::kUInt16}, {"u32", at::kUInt32}, {"u64", at::kUInt64}};
  const auto found = types.find(name);
  if (found == types.end()) throw std::runtime_error("libtorch has no dtype " + name);
  return found->second;
}

at::Tensor make_tensor(const json& spec) {
  const auto dims = spec["dims"].get<std::vector<int64_t>>();
  const at::ScalarType type = dtype_of(spec["dtype"]);
  at::Tensor values = at::empty(dims, at::kFloat).uniform_(spec["low"].get<double>(), spec["high"].get<double>());
  if (spec.value("fill", "") == "sorted") values = std::get<0>(values.sort());
  const at::Tensor whole = at::isIntegralType(type, false) ? values.floor() : values;
  return type == at::kBool ? values.gt(0) : whole.to(type).contiguous();
}

// Shared by schemas and arguments.
class Binder {
 public:
  explicit Binder(const std::vector<at::Tensor>& tensors) : tensors_(tensors) {}

  // The value of `argument` as a parameter of type `type`.
  std::optional<IValue> value(const json& argument, const c10::TypePtr& type) const {
    if (type->kind() == TypeKind::OptionalType) {
      if (argument.is_null()) return IValue();
      return value(argument, type->castRaw<c10::OptionalType>()->getElementType());
    }
    if (argument.is_object()) return of_object(argument, type);
    switch (type->kind()) {
      case TypeKind::BoolType:
        return argument.is_boolean() ? std::optional<IValue>(argument.get<bool>()) : std::nullopt;
      case TypeKind::IntType:
      case TypeKind::SymIntType:
        return argument.is_number_integer() ? std::optional<IValue>(argument.get<int64_t>()) : std::nullopt;
      case TypeKind::FloatType:
        return argument.is_number() ? std::optional<IValue>(argument.get<double>()) : std::nullopt;
      case TypeKind::NumberType:
        if (argument.is_number_integer()) return IValue(argument.get<int64_t>());
        return argument.is_number() ? std::optional<IValue>(argument.get<double>()) : std::nullopt;
      case TypeKind::StringType:
        return argument.is_string() ? std::optional<IValue>(argument.get<std::string>()) : std::nullopt;
      case TypeKind::ListType: return of_list(argument, *type->castRaw<c10::ListType>());
      default: return std::nullopt;
    }
  }

  // The arguments for a call of `schema`; nothing if they do not fit.
  std::optional<Stack> stack(const c10::FunctionSchema& schema, const json& positional) const {
    Stack stack;
    for (size_t i = 0; i < schema.arguments().size(); ++i) {
      const c10::Argument& parameter = schema.arguments()[i];
      if (parameter.is_out()) return std::nullopt;
      std::optional<IValue> given;
      if (i < positional.size()) {
        if (parameter.kwarg_only()) return std::nullopt;
        given = value(positional[i], parameter.type());
      } else if (parameter.default_value()) {
        given = *parameter.default_value();
      }
      if (!given) return std::nullopt;
      stack.push_back(*given);
    }
    if (positional.size() > schema.arguments().size()) return std::nullopt;
    return stack;
  }

 private:
  std::optional<IValue> of_object(const json& argument, const c10::TypePtr& type) const {
    if (argument.contains("t") && type->kind() == TypeKind::TensorType) return IValue(tensors_.at(argument["t"]));
    if (argument.contains("dtype") && type->kind() == TypeKind::IntType)
      return IValue(static_cast<int64_t>(dtype_of(argument["dtype"])));
    if (argument.contains("ts") && type->kind() == TypeKind::ListType) {
      c10::List<at::Tensor> list;
      for (const json& number : argument["ts"]) list.push_back(tensors_.at(number));
      return IValue(list);
    }
    return std::nullopt;
  }

  static std::optional<IValue> of_list(const json& argument, const c10::ListType& type) {
    const TypeKind element = type.getElementType()->kind();
    const json list = argument.is_array() ? argument : json::array({argument});
    if (element == TypeKind::IntType || element == TypeKind::SymIntType) {
      c10::List<int64_t> values;
      for (const json& each : list) {
        if (!each.is_number_integer()) return std::nullopt;
        values.push_back(each);
      }
      return IValue(values);
    }
    if (element != TypeKind::FloatType) return std::nullopt;
    c10::List<double> values;
    for (const json& each : list) {
      if (!each.is_number()) return std::nullopt;
      values.push_back(each);
    }
    return IValue(values);
  }

  const std::vector<at::Tensor>& tensors_;
};

void flatten(const IValue& value, std::vector<at::Tensor>* out) {
  if (value.isTensor()) out->push_back(value.toTensor());
  if (value.isTensorList()) {
    for (const at::Tensor& each : value.toTensorVector()) out->push_back(each);
  }
}

}  // namespace

struct TorchOp::Call {
  std::vector<at::Tensor> tensors;
  std::vector<Input> inputs;
  std::string why_not;
  std::optional<c10::OperatorHandle> op;
  Stack arguments;

  std::vector<at::Tensor> results() const {
    const c10::InferenceMode guard;
    Stack stack = arguments;
    op->callBoxed(stack);
    std::vector<at::Tensor> out;
    for (const IValue& value : stack) flatten(value, &out);
    return out;
  }
};

TorchOp::TorchOp(const json& spec) : call_(std::make_unique<Call>()) {
  Call& call = *call_;
  for (const json& each : spec["tensors"]) {
    const at::Tensor tensor = make_tensor(each);
    call.tensors.push_back(tensor);
    call.inputs.push_back({tensor.sizes().vec(), each["dtype"], tensor.data_ptr()});
  }
  const json& wanted = spec["torch"];
  const std::string name = "aten::" + wanted["op"].get<std::string>();
  const Binder binder(call.tensors);
  for (const auto& overload : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name))) {
    std::optional<Stack> bound = binder.stack(overload->schema(), wanted["args"]);
    if (!bound) continue;
    call.op = c10::Dispatcher::singleton().findSchema(overload->schema().operator_name());
    if (!call.op) continue;
    call.arguments = std::move(*bound);
    return;
  }
  call.why_not = name + " has no overload for these arguments";
}

TorchOp::~TorchOp() = default;

const std::vector<Input>& TorchOp::inputs() const { return call_->inputs; }
const std::string& TorchOp::why_not() const { return call_->why_not; }

void TorchOp::run(int64_t n, int threads) {
  const c10::InferenceMode guard;
  if (at::get_num_threads() != threads) at::set_num_threads(threads);
  const Stack& arguments = call_->arguments;
  Stack stack, last;  // the last result lives until the next one, as in a loop over a variable
  for (int64_t i = 0; i < n; ++i) {
    stack.assign(arguments.begin(), arguments.end());
    call_->op->callBoxed(stack);
    std::swap(stack, last);
  }
}

std::vector<Values> TorchOp::results() {
  std::vector<Values> all;
  for (const at::Tensor& result : call_->results()) {
    const at::Tensor wide = result.to(at::kDouble).contiguous();
    const double* data = wide.data_ptr<double>();
    all.push_back({wide.sizes().vec(), {data, data + wide.numel()}});
  }
  return all;
}

std::vector<double> TorchOp::widen(const void* data, int64_t count, const std::string& dtype) {
  const at::Tensor wide = at::from_blob(const_cast<void*>(data), {count}, dtype_of(dtype)).to(at::kDouble);
  const double* values = wide.data_ptr<double>();
  return {values, values + count};
}

std::string TorchOp::version() { return TORCH_VERSION; }

}  // namespace tenon::bench
