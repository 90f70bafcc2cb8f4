// The bidiagonal form of a small matrix, per dispatch target.
#pragma once

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

inline constexpr int most_bidiagonal = 128;  // the most rows and columns of a small matrix

// `a` has `columns` columns of `rows` elements, with columns <= rows. The squares of its elements must be finite in
// f32. Outputs as in LAPACK's gebrd: the diagonal, and `beside`, the columns - 1 elements above it. `a` then holds the
// column reflections below the diagonal (scales in left_scales) and the row reflections to the right of `beside`
// (scales in right_scales).
struct SmallBidiagonal {
  float* a;
  int rows, columns;
  float *diagonal, *beside, *left_scales, *right_scales;
};

using BidiagonalKernel = void (*)(const SmallBidiagonal& matrix);

// `u` (`columns` columns of `rows` elements, zeros below the first `columns` rows) and `vh` (`columns` x `columns`)
// hold singular vectors of the bidiagonal matrix. They become the singular vectors of the matrix whose reflections
// `matrix` holds.
using ReflectKernel = void (*)(const SmallBidiagonal& matrix, float* u, float* vh);

BidiagonalKernel bidiagonal_kernel(SimdLevel level);
ReflectKernel reflect_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
