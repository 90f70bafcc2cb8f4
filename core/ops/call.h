// The dynamic call: calls an op by its name with arguments as values. The overload is chosen as in Python: positional
// arguments bind in order, keywords by name, and defaults fill the rest. The first signature in table order that
// accepts all arguments wins.
//
//   TensorList y = tenon::call("pow", {x, 2}, {{"out", z}});
//   const DynamicOp& op = tenon::find_op("pow");  // once, then
//   TensorList y = tenon::call(op, {x, 2});
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/device/export.h"
#include "core/ops/signature.h"
#include "core/tensor/tensor.h"
#include "primitives/status/error.h"

namespace tenon {

class Generator;  // core/tensor/generator.h

// An argument of a dynamic call.
class TENON_API Value {
 public:
  using Ints = std::vector<int64_t>;
  using Floats = std::vector<double>;
  // An object of the caller's language that matches no kind below. No parameter accepts it; errors name its `type`.
  struct Foreign {
    std::string type;
  };
  // A tensor of the caller, which must outlive the value. The value holds no count of it.
  struct Borrowed {
    Tensor* tensor;
  };

  Value() = default;  // None
  Value(Tensor tensor) : held_(std::move(tensor)) {}
  Value(Borrowed tensor) : held_(tensor) {}
  Value(bool value) : held_(value) {}
  template <std::integral T>
  Value(T value) : held_(static_cast<int64_t>(value)) {}
  template <std::floating_point T>
  Value(T value) : held_(static_cast<double>(value)) {}
  Value(Ints values) : held_(std::move(values)) {}
  Value(Floats values) : held_(std::move(values)) {}
  Value(TensorList tensors) : held_(std::move(tensors)) {}
  Value(DType dtype) : held_(dtype) {}
  Value(Device device) : held_(device) {}
  Value(std::string text) : held_(std::move(text)) {}
  Value(const char* text) : held_(std::string(text)) {}
  Value(Generator& generator) : held_(&generator) {}  // must outlive the call
  Value(Foreign object) : held_(std::move(object)) {}

  // The kAccepts... bit of its kind; 0 for a foreign object.
  uint16_t kind() const {
    constexpr uint16_t of_list = 0xffff;
    static constexpr uint16_t kinds[] = {
        kAcceptsNone,  kAcceptsTensor, kAcceptsBool,   kAcceptsInt,    kAcceptsFloat,     of_list,        of_list,
        kAcceptsDtype, kAcceptsDevice, kAcceptsString, kAcceptsFloats, kAcceptsGenerator, kAcceptsTensor, 0};
    const uint16_t kind = kinds[held_.index()];
    return kind == of_list ? kind_of_list() : kind;
  }
  // The name of its type in Python: "Tensor", "int", "list".
  std::string_view type_name() const;

  template <class T>
  const T* get() const {
    return std::get_if<T>(&held_);
  }
  Tensor* tensor() const {
    if (const Borrowed* borrowed = std::get_if<Borrowed>(&held_)) return borrowed->tensor;
    return std::get_if<Tensor>(&held_);
  }

 private:
  uint16_t kind_of_list() const;

  // mutable, since in-place ops write through the handle of a constant argument.
  mutable std::variant<std::monostate, Tensor, bool, int64_t, double, Ints, TensorList, DType, Device, std::string,
                       Floats, Generator*, Borrowed, Foreign>
      held_;
};

struct Keyword {
  std::string_view name;
  Value value;
};

// The op called `name`; the reference stays valid. Errors: not_found, with the nearest name.
TENON_API const DynamicOp& find_op(std::string_view name);
// Like find_op above, in `table`, which must be sorted by name.
TENON_API const DynamicOp& find_op(std::span<const DynamicOp> table, std::string_view name);

// No signature of `op` accepts the arguments of a dynamic call. The code is invalid_argument.
class TENON_API CallError : public Error {
 public:
  CallError(std::string_view op, std::string reason, std::string advice = {});
  ~CallError() override;
  const std::string& op() const { return status().parts().subject; }
};

// Calls `op`. Errors: CallError if no signature accepts the arguments, with the reason for each; those of the op.
TENON_API TensorList call(const DynamicOp& op, std::span<const Value> args, std::span<const Keyword> kwargs = {});
TENON_API TensorList call(std::string_view name, std::span<const Value> args, std::span<const Keyword> kwargs = {});

// The results of a call: a single tensor without a list around it, or a list.
struct Results {
  std::optional<Tensor> one;
  TensorList several;
};
// Like call, for callers that want to avoid allocating a list of one.
TENON_API Results call_for_results(const DynamicOp& op, std::span<const Value> args,
                                   std::span<const Keyword> kwargs = {});

inline TensorList call(const DynamicOp& op, std::initializer_list<Value> args,
                       std::initializer_list<Keyword> kwargs = {}) {
  return call(op, std::span(args.begin(), args.size()), std::span(kwargs.begin(), kwargs.size()));
}
inline TensorList call(std::string_view name, std::initializer_list<Value> args,
                       std::initializer_list<Keyword> kwargs = {}) {
  return call(find_op(name), args, kwargs);
}

// Every op of the dynamic call, sorted by name.
TENON_API std::span<const DynamicOp> list_ops();

}  // namespace tenon
