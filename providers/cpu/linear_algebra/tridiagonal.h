// Eigenvalues of a small symmetric matrix, per dispatch target.
#pragma once

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

inline constexpr int most_tridiagonal = 128;  // the most rows of a small matrix
inline constexpr int most_rotated = 64;       // and of one whose vectors QL finds sooner than LAPACK's halves do

// `a`: n columns of n elements, a symmetric matrix of which both triangles are read, whose numbers have squares in f32.
struct SmallSymmetric {
  float* a;
  int n;
};

// As LAPACK's sytrd of the lower triangle: the diagonal, the n - 1 numbers beside it, the reflections below those and
// their scales.
using ReduceKernel = void (*)(const SmallSymmetric& matrix, float* diagonal, float* beside, float* scales);
// Of at most most_rotated rows. Writes the eigenvalues from the least on; the columns of `a` become their vectors.
// False: no solution was found.
using EigenKernel = bool (*)(const SmallSymmetric& matrix, float* values);

ReduceKernel reduce_kernel(SimdLevel level);
EigenKernel eigen_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
