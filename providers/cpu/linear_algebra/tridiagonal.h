// Eigenvalues of a small symmetric matrix, per dispatch target.
#pragma once

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

inline constexpr int most_tridiagonal = 128;  // the most rows of a small matrix
inline constexpr int most_rotated = 64;       // the most rows for which QL is faster than LAPACK's divide and conquer

// `a`: a symmetric matrix of n x n elements, both triangles stored. The squares of its elements must be finite in f32.
struct SmallSymmetric {
  float* a;
  int n;
};

// Like LAPACK's sytrd for the lower triangle: writes the diagonal, the n - 1 elements beside it, the reflections into
// `a` below them, and their scales.
using ReduceKernel = void (*)(const SmallSymmetric& matrix, float* diagonal, float* beside, float* scales);
// Takes at most most_rotated rows. Writes the eigenvalues in ascending order; the columns of `a` become the
// eigenvectors. Returns false if no solution was found.
using EigenKernel = bool (*)(const SmallSymmetric& matrix, float* values);

ReduceKernel reduce_kernel(SimdLevel level);
EigenKernel eigen_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
