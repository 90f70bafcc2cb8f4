// Functions of sizes for the rules, for sizes that are numbers. core/symbolic/sym_dim.h has them for sizes that are
// expressions; each rule is a template over both. A rule writes `if (a == b)` to choose a case, `expect(a == b)` to
// require equality, and `surely(a == b)` or identical(a, b) if the answer only saves work. Internal to the library.
#pragma once

#include <algorithm>
#include <cstdint>

#include "primitives/shape/shape.h"

namespace tenon {

inline bool identical(int64_t a, int64_t b) { return a == b; }
inline bool expect(bool holds) { return holds; }
inline bool surely(bool holds) { return holds; }

inline int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0) & ((a < 0) != (b < 0))); }
inline int64_t ceil_div(int64_t a, int64_t b) { return a / b + ((a % b != 0) & ((a < 0) == (b < 0))); }
inline int64_t modulo(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }
inline int64_t min_size(int64_t a, int64_t b) { return std::min(a, b); }
inline int64_t max_size(int64_t a, int64_t b) { return std::max(a, b); }
inline int64_t clamp_size(int64_t a, int64_t lo, int64_t hi) { return std::min(std::max(a, lo), hi); }
inline bool add_overflows(int64_t a, int64_t b, int64_t* out) { return __builtin_add_overflow(a, b, out); }
inline bool mul_overflows(int64_t a, int64_t b, int64_t* out) { return __builtin_mul_overflow(a, b, out); }

// Sets `out` to the length of an axis that broadcasts lengths `a` and `b`. Returns false if they do not broadcast.
inline bool broadcast_size(int64_t a, int64_t b, int64_t* out) {
  *out = a == 1 ? b : a;
  return a == b || a == 1 || b == 1;
}

// True if the sizes are identical, so that the shapes are certainly equal.
template <class T>
bool identical(const BasicDims<T>& a, const BasicDims<T>& b) {
  if (a.rank() != b.rank()) return false;
  for (int32_t axis = 0; axis < a.rank(); ++axis) {
    if (!identical(a[axis], b[axis])) return false;
  }
  return true;
}

}  // namespace tenon
