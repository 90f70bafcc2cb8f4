// The implicit conversions of arguments: what a parameter takes besides the kinds that it accepts directly. The dynamic
// call uses them, and so does every binding that calls through it, such as Python's. A signature that accepts the
// arguments directly wins over one that converts. In C++ the compiler chooses the overload; `cpp` describes how it gets
// the same result.
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
  std::string_view example;  // an example, as a dynamic call
  std::string_view cpp;
  // Returns the converted value; nothing if this row does not apply. Null: the row concerns more than one argument, and
  // core/ops/call.cpp or the op handles it.
  std::optional<Value> (*convert)(const Parameter& parameter, const Value& value);
};

TENON_API std::span<const Conversion> conversions();

// `value` converted for `parameter` by the first row that applies.
std::optional<Value> converted(const Parameter& parameter, const Value& value);

// The name of a dtype in PyTorch and NumPy: "float32".
TENON_API std::string dtype_long_name(DType dtype);
// The dtype with this name in NumPy, PyTorch or Tenon: "float32", "f32", "double". Nothing if there is none.
TENON_API std::optional<DType> dtype_of_text(std::string_view name);

}  // namespace tenon
