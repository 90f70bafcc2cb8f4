// The implicit conversions of arguments, once: what a parameter takes beside the kinds that it accepts as they are. The
// dynamic call uses them, and so does every binding that calls through it, such as Python's. A signature that takes the
// arguments as they are goes before one that converts. In C++ the compiler chooses the overload; `cpp` says how it
// comes to the same.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/ops/call.h"

namespace tenon {

struct Conversion {
  std::string_view from;     // "Tensor of rank 0"
  std::string_view to;       // "int"
  std::string_view example;  // a call of it, as the dynamic call has it
  std::string_view cpp;
  // The value as `parameter` takes it; nothing if this row does not apply. Null: the row concerns more than one
  // argument, and core/ops/call.cpp or the op sees to it.
  std::optional<Value> (*convert)(const Parameter& parameter, const Value& value);
};

TENON_API std::span<const Conversion> conversions();

// `value` for `parameter` by the first row that applies.
std::optional<Value> converted(const Parameter& parameter, const Value& value);

// The name of a dtype in PyTorch and NumPy: "float32".
TENON_API std::string dtype_long_name(DType dtype);
// The dtype of a name that NumPy, PyTorch or Tenon gives it: "float32", "f32", "double". Nothing: there is none.
TENON_API std::optional<DType> dtype_of_text(std::string_view name);

}  // namespace tenon
