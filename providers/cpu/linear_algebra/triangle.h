// Solves with a small triangle, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

inline constexpr int triangle_side = 64;  // the most rows of a small triangle

// b, `columns` columns of `rows` elements that lie b_stride apart, becomes the inverse of the triangle times b. `unit`:
// the diagonal counts as 1.
struct TriangleSolve {
  const float* triangle;
  int64_t stride;
  bool upper, unit;
  float* b;
  int64_t b_stride;
  int rows;
  int64_t columns;
};

using TriangleKernel = void (*)(const TriangleSolve& solve);

TriangleKernel triangle_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
