// Values: numbers for the symbols of an arena, and the sizes that follow from them. A run makes one, binds the sizes of
// its inputs, and asks for others. Arithmetic is checked; an error names the symbol or the expression.
//
// The arena must outlive it and must not grow meanwhile. Threads: each thread uses its own.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/symbolic/arena.h"
#include "core/symbolic/evaluate.h"
#include "primitives/shape/shape.h"
#include "primitives/status/status.h"

#pragma GCC visibility push(default)  // exported by libtenon.so
namespace tenon::symbolic {

class Values {
 public:
  explicit Values(const Arena& arena) : arena_(arena), values_(arena.size()) {}

  // Errors: invalid_argument if the declaration of the symbol excludes `value`:
  // "S0 (axis 0 of input 'x') is 7, but it must be from 8 to 16 and a multiple of 8."
  Status bind(uint32_t symbol, int64_t value);

  // Errors: invalid_argument (overflow, division by 0, a symbol without a value):
  // "The size S0*S1 is more than int64 can hold where S0 (axis 0 of input 'x') is 9223372036854775807 and ...".
  Result<int64_t> of(SymDim size);
  // Errors: as above, and for a negative dim or more than int64 bytes. They begin with the name of the op.
  Result<Dims> of(std::string_view op, const SymDims& dims);

  // True if `condition` holds; a side without a value is an error.
  Result<bool> holds(const Condition& condition);
  // The first guard that does not hold or whose sides have no value; null if all hold.
  const Constraint* broken_guard();
  // The error of the first check that does not hold: "reshape: U1 == 12 must hold, but U1 (...) is 13."
  Status check();

  // "S0 (...) is 3 and S1 (...) is 4": the symbols in `a` and `b`.
  std::string where(SymDim a, SymDim b) const;

 private:
  Value value(uint32_t index);

  const Arena& arena_;
  std::vector<std::optional<Value>> values_;
};

}  // namespace tenon::symbolic
#pragma GCC visibility pop
