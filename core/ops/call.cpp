#include "core/ops/call.h"

#include <algorithm>
#include <array>
#include <list>
#include <optional>

#include "core/ops/argument_list.h"
#include "core/ops/conversions.h"
#include "core/ops/libraries.h"
#include "core/ops/op_rows.h"
#include "core/ops/ops.h"
#include "primitives/infer/types.h"
#include "primitives/text/format.h"
#include "primitives/text/nearest.h"

namespace tenon {
namespace {

constexpr size_t kMostParameters = 24;

using Bound = std::array<const Value*, kMostParameters>;

bool accepts(const Parameter& parameter, const Value& value) { return (parameter.accepts & value.kind()) != 0; }

size_t positional_count(const Signature& signature) {
  const auto first = std::find_if(signature.parameters.begin(), signature.parameters.end(),
                                  [](const Parameter& p) { return p.keyword_only; });
  return static_cast<size_t>(first - signature.parameters.begin());
}

// The argument called `name`; null if there is none.
const Value* named(std::span<const Keyword> kwargs, std::string_view name) {
  for (const Keyword& keyword : kwargs) {
    if (keyword.name == name) return &keyword.value;
  }
  return nullptr;
}

// Binds the arguments to `signature`. False if the signature does not accept them; first_failure returns the reason.
bool bind(const Signature& signature, std::span<const Value> args, std::span<const Keyword> kwargs, Bound* bound) {
  const std::span<const Parameter> parameters = signature.parameters;
  if (args.size() > parameters.size()) return false;
  for (size_t i = 0; i < args.size(); ++i) {
    if (parameters[i].keyword_only || !accepts(parameters[i], args[i])) return false;
    (*bound)[i] = &args[i];
  }
  size_t used = 0;
  for (size_t i = args.size(); i < parameters.size(); ++i) {
    const Value* given = named(kwargs, parameters[i].name);
    if (given == nullptr ? parameters[i].required : !accepts(parameters[i], *given)) return false;
    if (given != nullptr) ++used;
    (*bound)[i] = given;
  }
  return used == kwargs.size();
}

// Arguments that were converted or merged into a list. A list keeps their addresses, and an empty one allocates
// nothing.
using Held = std::list<Value>;

// The int arguments from position `i` on as one list, if parameter i takes a list and no other parameter can take them:
// permute(x, 1, 0). Otherwise null.
const Value* listed_ints(const Signature& signature, std::span<const Value> args, size_t i, Held* held) {
  const Parameter& parameter = signature.parameters[i];
  const bool last = i + 1 == positional_count(signature);
  const bool list_alone = (parameter.accepts & (kAcceptsInts | kAcceptsInt)) == kAcceptsInts;
  if ((parameter.accepts & kAcceptsInts) == 0 || !(last || list_alone) || args.size() - i < (list_alone ? 1 : 2)) {
    return nullptr;
  }
  Value::Ints list;
  list.reserve(args.size() - i);
  for (const Value& each : args.subspan(i)) {
    const int64_t* number = each.get<int64_t>();
    if (number == nullptr) return nullptr;
    list.push_back(*number);
  }
  return &held->emplace_back(std::move(list));
}

// Like listed_ints, for tensors: einsum('ij,jk', x, y). A single first argument is not treated as a list: vstack(x) may
// mean the rows of x.
const Value* listed_tensors(const Signature& signature, std::span<const Value> args, size_t i, Held* held) {
  const bool last = i + 1 == positional_count(signature);
  if ((signature.parameters[i].accepts & kAcceptsTensors) == 0 || !last || args.size() < 2) return nullptr;
  TensorList list;
  for (const Value& each : args.subspan(i)) {
    const Tensor* tensor = each.tensor();
    if (tensor == nullptr) return nullptr;
    list.push_back(*tensor);
  }
  return &held->emplace_back(std::move(list));
}

const Value* listed(const Signature& signature, std::span<const Value> args, size_t i, Held* held) {
  const Value* list = listed_ints(signature, args, i, held);
  return list != nullptr ? list : listed_tensors(signature, args, i, held);
}

// `value` in the form that `parameter` takes; null if it does not fit. `left_out`: None means the default.
const Value* fitting(const Parameter& parameter, const Value& value, Held* held, bool* left_out) {
  if (accepts(parameter, value)) return &value;
  *left_out =
      value.kind() == kAcceptsNone && !parameter.required && (parameter.accepts & (kAcceptsDtype | kAcceptsDevice));
  if (*left_out) return nullptr;
  std::optional<Value> found = converted(parameter, value);
  return found ? &held->emplace_back(std::move(*found)) : nullptr;
}

// Like bind, with the conversions of conversions.h.
bool bind_converted(const Signature& signature, std::span<const Value> args, std::span<const Keyword> kwargs,
                    Bound* bound, Held* held) {
  const std::span<const Parameter> parameters = signature.parameters;
  size_t used = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    const Value* given = nullptr;
    if (i < args.size()) {
      if (parameter.keyword_only) return false;
      if (const Value* list = listed(signature, args, i, held)) {
        (*bound)[i] = list;
        args = args.first(i + 1);
        continue;
      }
      given = &args[i];
    } else {
      given = named(kwargs, parameter.name);
      if (given != nullptr) ++used;
    }
    bool left_out = given == nullptr && !parameter.required;
    const Value* value = given == nullptr ? nullptr : fitting(parameter, *given, held, &left_out);
    if (value == nullptr && !left_out) return false;
    (*bound)[i] = value;
  }
  return used == kwargs.size() && args.size() <= parameters.size();
}

// The first reason why `signature` does not accept the arguments, as a sentence without its subject.
std::string first_failure(const Signature& signature, std::span<const Value> args, std::span<const Keyword> kwargs) {
  const std::span<const Parameter> parameters = signature.parameters;
  const size_t positional = positional_count(signature);
  if (args.size() > positional) {
    return fmt::format("takes {}{} but {}{}", positional,
                       positional == 1 ? " positional argument" : " positional arguments", args.size(),
                       args.size() == 1 ? " was given" : " were given");
  }
  for (size_t i = 0; i < args.size(); ++i) {
    if (!accepts(parameters[i], args[i])) {
      return fmt::format("argument '{}' must be {}, not {}", parameters[i].name, parameters[i].type,
                         args[i].type_name());
    }
  }
  for (size_t k = 0; k < kwargs.size(); ++k) {
    const Keyword& keyword = kwargs[k];
    const auto found =
        std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& p) { return p.name == keyword.name; });
    if (found == parameters.end()) return fmt::format("got an unexpected keyword argument '{}'", keyword.name);
    const bool again = std::any_of(kwargs.begin(), kwargs.begin() + static_cast<ptrdiff_t>(k),
                                   [&](const Keyword& other) { return other.name == keyword.name; });
    if (again || static_cast<size_t>(found - parameters.begin()) < args.size()) {
      return fmt::format("got multiple values for argument '{}'", keyword.name);
    }
    if (!accepts(*found, keyword.value)) {
      return fmt::format("argument '{}' must be {}, not {}", keyword.name, found->type, keyword.value.type_name());
    }
  }
  for (size_t i = args.size(); i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    const bool given =
        std::any_of(kwargs.begin(), kwargs.end(), [&](const Keyword& k) { return k.name == parameter.name; });
    if (parameter.required && !given) return fmt::format("missing required argument {}", parameter.name);
  }
  return "takes these arguments";
}

[[noreturn]] void refuse_call(const DynamicOp& op, std::span<const Value> args, std::span<const Keyword> kwargs) {
  if (op.signatures.size() == 1) {
    throw CallError(op.name, first_failure(op.signatures[0], args, kwargs),
                    fmt::format("The signature is {}.", op.signatures[0].text));
  }
  std::string text = "received an invalid combination of arguments. The valid signatures are:";
  for (size_t i = 0; i < op.signatures.size(); ++i) {
    const Signature& signature = op.signatures[i];
    text += fmt::format("\n  {}: {}\n     {}", i, signature.text, first_failure(signature, args, kwargs));
  }
  throw CallError(op.name, text);
}

// Calls the first signature that accepts the arguments after conversions. Separate from invoke, to keep that short.
[[gnu::noinline]] TensorList invoke_converted(const DynamicOp& op, std::span<const Value> args,
                                              std::span<const Keyword> kwargs, std::optional<Tensor>* one) {
  Bound bound;
  for (const Signature& signature : op.signatures) {
    Held held;
    if (!bind_converted(signature, args, kwargs, &bound, &held)) continue;
    return signature.invoke(ArgumentList({bound.data(), signature.parameters.size()}, one));
  }
  refuse_call(op, args, kwargs);
}

// Calls the first signature that accepts the arguments. `one` as in ArgumentList.
TensorList invoke(const DynamicOp& op, std::span<const Value> args, std::span<const Keyword> kwargs,
                  std::optional<Tensor>* one) {
  Bound bound;
  for (const Signature& signature : op.signatures) {
    if (!bind(signature, args, kwargs, &bound)) continue;
    return signature.invoke(ArgumentList({bound.data(), signature.parameters.size()}, one));
  }
  return invoke_converted(op, args, kwargs, one);
}

}  // namespace

CallError::CallError(std::string_view op, std::string reason, std::string advice)
    : Error(Status(Failure{.code = Code::invalid_argument,
                           .subject = std::string(op),
                           .arguments = "():",
                           .reason = std::move(reason),
                           .advice = std::move(advice)})) {}
CallError::~CallError() = default;

uint16_t Value::kind_of_list() const {
  if (const Ints* ints = get<Ints>()) return ints->empty() ? kAcceptsEmpty : kAcceptsInts;
  return get<TensorList>()->empty() ? kAcceptsEmpty : kAcceptsTensors;
}

std::string_view Value::type_name() const {
  constexpr std::string_view names[] = {"None",           "Tensor",          "bool",  "int",    "float",
                                        "list of ints",   "list of Tensors", "dtype", "device", "str",
                                        "list of floats", "Generator",       "Tensor"};
  const Foreign* foreign = get<Foreign>();
  return foreign == nullptr ? names[held_.index()] : foreign->type;
}

TensorList ArgumentList::list_of(Tensor result) {
  TensorList list;
  list.push_back(std::move(result));
  return list;
}

Scalar ArgumentList::scalar(size_t i) const {
  const Value& value = *values_[i];
  if (const bool* flag = value.get<bool>()) return Scalar(*flag);
  if (const int64_t* integer = value.get<int64_t>()) return Scalar(*integer);
  return Scalar(*value.get<double>());
}

Tensor ArgumentList::tensor_or_number(size_t i, size_t like) const {
  if (const Tensor* tensor = values_[i]->tensor()) return *tensor;
  const Scalar number = scalar(i);
  if (!given(like) || values_[like]->tensor() == nullptr || !tensor(like).defined()) return full(IntList(), number);
  const DType dtype = infer::promote_number(tensor(like).dtype(), dtype_info(number.dtype()).type_class);
  return full(IntList(), number, dtype, tensor(like).device());
}

Tensor ArgumentList::tensor_or_double(size_t i) const {
  if (const Tensor* tensor = values_[i]->tensor()) return *tensor;
  return full(IntList(), scalar(i).to_double(), DType::f64, Device::host());
}

const TensorList& ArgumentList::tensors(size_t i) const {
  static const TensorList none;
  const TensorList* list = values_[i]->get<TensorList>();
  return list == nullptr ? none : *list;
}

IntList ArgumentList::ints(size_t i) const {
  if (const int64_t* integer = values_[i]->get<int64_t>()) return IntList(*integer);
  const Value::Ints* list = values_[i]->get<Value::Ints>();
  return list == nullptr ? IntList() : IntList(*list);
}

std::span<const DynamicOp> list_ops() { return dynamic_ops(); }

const DynamicOp& find_op(std::span<const DynamicOp> table, std::string_view name) {
  const auto found = std::lower_bound(table.begin(), table.end(), name,
                                      [](const DynamicOp& op, std::string_view wanted) { return op.name < wanted; });
  if (found != table.end() && found->name == name) return *found;
  const auto nearest = std::min_element(table.begin(), table.end(), [&](const DynamicOp& a, const DynamicOp& b) {
    return edit_distance(a.name, name) < edit_distance(b.name, name);
  });
  const std::string near = nearest == table.end() ? std::string() : fmt::format("; the nearest is '{}'", nearest->name);
  throw Error(Code::not_found, fmt::format("There is no op called '{}'{}.", name, near));
}

const DynamicOp& find_op(std::string_view name) {
  return name.find("::") == std::string_view::npos ? find_op(dynamic_ops(), name) : find_library_op(name);
}

TensorList call(const DynamicOp& op, std::span<const Value> args, std::span<const Keyword> kwargs) {
  return invoke(op, args, kwargs, nullptr);
}

Results call_for_results(const DynamicOp& op, std::span<const Value> args, std::span<const Keyword> kwargs) {
  Results results{std::nullopt, invoke(op, args, kwargs, &results.one)};
  return results;
}

TensorList call(std::string_view name, std::span<const Value> args, std::span<const Keyword> kwargs) {
  return call(find_op(name), args, kwargs);
}

}  // namespace tenon
