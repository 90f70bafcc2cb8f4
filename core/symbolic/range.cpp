#include "core/symbolic/range.h"

namespace tenon::symbolic {
namespace {

using Wide = __int128;

// `bound` as a lower and as an upper bound. A bound beyond int64 is moved outwards, so it stays valid.
int64_t low_bound(Wide bound) {
  return bound <= Range::kNone ? Range::kNone : static_cast<int64_t>(std::min<Wide>(bound, Range::kEndless - 1));
}
int64_t high_bound(Wide bound) {
  return bound >= Range::kEndless ? Range::kEndless : static_cast<int64_t>(std::max<Wide>(bound, Range::kNone + 1));
}

constexpr Wide kInfinite = Wide{1} << 100;
Wide widen(int64_t bound) {
  if (bound == Range::kNone) return -kInfinite;
  return bound == Range::kEndless ? kInfinite : Wide{bound};
}

Wide product(Wide a, Wide b) {
  if (a == 0 || b == 0) return 0;
  const bool infinite = a >= kInfinite || b >= kInfinite || a <= -kInfinite || b <= -kInfinite;
  if (infinite) return (a < 0) == (b < 0) ? kInfinite : -kInfinite;
  return a * b;  // two 64-bit numbers
}

}  // namespace

Range add(Range a, Range b) {
  Range sum;
  if (a.lo != Range::kNone && b.lo != Range::kNone) sum.lo = low_bound(Wide{a.lo} + b.lo);
  if (a.hi != Range::kEndless && b.hi != Range::kEndless) sum.hi = high_bound(Wide{a.hi} + b.hi);
  return sum;
}

Range negate(Range a) {
  return {a.hi == Range::kEndless ? Range::kNone : low_bound(-Wide{a.hi}),
          a.lo == Range::kNone ? Range::kEndless : high_bound(-Wide{a.lo})};
}

Range multiply(Range a, Range b) {
  const Wide corners[] = {product(widen(a.lo), widen(b.lo)), product(widen(a.lo), widen(b.hi)),
                          product(widen(a.hi), widen(b.lo)), product(widen(a.hi), widen(b.hi))};
  return {low_bound(*std::min_element(corners, corners + 4)), high_bound(*std::max_element(corners, corners + 4))};
}

Range floor_div(Range a, Range b) {
  if (b.lo < 1) return {};
  Range quotient;
  // The least quotient: a negative number by the least divisor, any other number by the greatest.
  if (a.lo != Range::kNone) {
    quotient.lo = a.lo < 0 ? floor_quotient(a.lo, b.lo) : b.hi == Range::kEndless ? 0 : floor_quotient(a.lo, b.hi);
  }
  if (a.hi != Range::kEndless) {
    quotient.hi = a.hi >= 0 ? floor_quotient(a.hi, b.lo) : b.hi == Range::kEndless ? -1 : floor_quotient(a.hi, b.hi);
  }
  return quotient;
}

Range modulo(Range a, Range b) {
  if (b.lo < 1) return {};
  if (a.lo >= 0 && a.hi < b.lo) return a;
  const Range below{0, b.hi == Range::kEndless ? Range::kEndless : b.hi - 1};
  return a.lo >= 0 ? intersect(below, {0, a.hi}) : below;
}

}  // namespace tenon::symbolic
