// Solves with a small triangular matrix, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

inline constexpr int triangle_side = 64;  // the most rows of a small triangle

// Replaces b (`columns` columns of `rows` elements, b_stride apart) by the inverse of the triangle times b. With
// `unit`, the diagonal counts as 1.
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
