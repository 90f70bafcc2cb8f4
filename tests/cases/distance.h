// Distance: how far a result is from the reference, and whether a tolerance allows it. Values are given as the bits of
// their dtype, in the low end of a word.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "tests/cases/case.h"
#include "tests/cases/range.h"

namespace tenon::cases {

// Returns the steps of the floating `dtype` from `a` to `b`: 0 for equal values, 1 for neighbours. -0 and 0 are one
// value. Returns nothing if either is NaN. Counts in integers, because doubles cannot resolve the steps of f64.
std::optional<uint64_t> steps_between(DType dtype, uint64_t a, uint64_t b);

// True if `tolerance` allows the result `got` where the reference is `want`. Integers and bool must be equal.
bool is_near(DType dtype, const Tolerance& tolerance, uint64_t got, uint64_t want);

// True if `saturation` allows the result `got` for an argument `x`.
bool is_within(DType dtype, const Saturation& saturation, uint64_t got, uint64_t want, uint64_t x);

// True if the result `got` lies in `range`, laid around the reference `want`; ends_of returns its ends there. The
// rounding of the reference adds one step, unless the function is exact. For f64 the range is twice as wide, because
// the functions of the reference are no better than a provider's. If denormals are flushed, 0 stands for any denormal
// in the range.
bool is_in(DType dtype, const Range& range, bool flushed, uint64_t got, uint64_t want);
std::pair<long double, long double> ends_of(DType dtype, const Range& range, uint64_t want);

bool is_zero(DType dtype, uint64_t bits);
// True if `tolerance` allows some denormal number where the reference is `want`.
bool may_be_denormal(DType dtype, const Tolerance& tolerance, uint64_t want);

// Prints the value of `bits` with enough digits to tell it from its neighbours.
std::string value_text(DType dtype, uint64_t bits);

// "5 ulp, 0 epsilons, 1 least normals"
std::string tolerance_text(const Tolerance& tolerance);

}  // namespace tenon::cases
