// Range: the possible values of a size, from `lo` to `hi`, both included. The extremes of int64 mean "no bound".
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tenon::symbolic {

struct Range {
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();

  int64_t lo = kNone;
  int64_t hi = kEndless;

  static Range of(int64_t number) { return {number, number}; }
  bool holds(int64_t number) const { return lo <= number && number <= hi; }
  bool is_number() const { return lo == hi; }
  bool bounded() const { return lo != kNone && hi != kEndless; }
  friend bool operator==(const Range&, const Range&) = default;
};

inline Range intersect(Range a, Range b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

// Sums and products of bounds; a result outside int64 means no bound.
Range add(Range a, Range b);
Range multiply(Range a, Range b);
Range negate(Range a);
// Quotients rounded down, and remainders like Python's %, for divisors of at least 1; otherwise no bounds.
Range floor_div(Range a, Range b);
Range modulo(Range a, Range b);
inline Range min(Range a, Range b) { return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)}; }
inline Range max(Range a, Range b) { return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)}; }

// Quotients rounded down and up; b must not be 0, and the result must fit.
constexpr int64_t floor_quotient(int64_t a, int64_t b) {
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}
constexpr int64_t ceil_quotient(int64_t a, int64_t b) { return a / b + ((a % b != 0) && ((a < 0) == (b < 0)) ? 1 : 0); }

// The least common multiple of two divisors of a value; `a` if it exceeds 62 bits.
int64_t common_multiple(int64_t a, int64_t b);

}  // namespace tenon::symbolic
