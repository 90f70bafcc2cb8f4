// The bidiagonal form of a small matrix, per dispatch target.
#pragma once

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

inline constexpr int most_bidiagonal = 128;  // the most rows and columns of a small matrix

// `a`, `columns` columns of `rows` elements, whose squares are in f32, no more columns than rows. As LAPACK's gebrd:
// the diagonal and the columns - 1 numbers beside it; the reflections of the columns below the diagonal of `a` and
// left_scales, those of the rows behind the number beside the diagonal and right_scales.
struct SmallBidiagonal {
  float* a;
  int rows, columns;
  float *diagonal, *beside, *left_scales, *right_scales;
};

using BidiagonalKernel = void (*)(const SmallBidiagonal& matrix);

// `u`, `columns` columns of `rows` elements, and `vh`, as many rows as columns, hold vectors of the bidiagonal matrix,
// those of u above zeros. They become those of the matrix whose reflections `matrix` has.
using ReflectKernel = void (*)(const SmallBidiagonal& matrix, float* u, float* vh);

BidiagonalKernel bidiagonal_kernel(SimdLevel level);
ReflectKernel reflect_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
