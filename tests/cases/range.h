// Range: the values that a function may return on a tier of accuracy, from the bounds of ep_api/accuracy.def. The
// prelude of scalar_ops.def is defined on ranges, so an expression of a row gives the range of its result.
#pragma once

#include <span>
#include <string_view>

#include "tests/cases/case.h"

namespace tenon::cases {

// The arithmetic that a range belongs to.
struct Level {
  Tier tier = Tier::full;
  bool wide = false;     // f64; else f32
  bool flushes = false;  // a denormal number may become 0 at any step
};

// All values from `low` to `high`; `exact` is the value without an error. If an end is NaN, the range is unknown.
struct Range {
  Level level;
  long double low = 0, exact = 0, high = 0;

  bool known() const;
};

// The possible truth values of a comparison of ranges.
struct Truth {
  bool may_hold = false, may_fail = false;
};

// A row of accuracy.def.
struct AccuracyRow {
  std::string_view name;
  double full, portable, per_x, absolute, portable_f64, relaxed, relaxed_absolute;
};
const AccuracyRow& accuracy_row(std::string_view name);

// A function of the prelude of one float argument, as accuracy.def describes it.
enum class Shape { RISING, FALLING, EVEN, WAVE, POLES, OTHER };
struct FloatFunction {
  std::string_view name;
  Shape shape;
  double first, last, least, near_roots;
  long double (*exact)(long double);  // no better than double if the C library lacks the function
};
std::span<const FloatFunction> float_functions();

// Returns what a row allows on a tier for an argument of this magnitude: units in the last place, or, if that is more,
// an error in epsilons (2^-23 for f32, 2^-52 for f64).
Bound bound_of(const AccuracyRow& row, const Level& level, double magnitude);

// The distance of the f32 or f64 number nearest to `value` from the next one, away from 0.
long double unit_at(long double value, bool wide);

// A range of the one value that the constant `value` has in the arithmetic of `level`.
Range constant(const Level& level, double value);

// Returns the range of a scalar function of EP_PRIMITIVE_unary, binary or ternary on floating arguments. It is unknown
// for a function that returns bool, or has no floating arguments.
Range unary_range(int32_t op, const Range& x, const Range& a, const Range& b);
Range binary_range(int32_t op, const Range& x, const Range& y);
Range ternary_range(int32_t op, const Range& x, const Range& y, const Range& z);

}  // namespace tenon::cases
