// A large symmetric matrix becomes tridiagonal, on several threads.
#pragma once

#include "providers/cpu/linear_algebra/blocked.h"

namespace tenon::provider::cpu {

// As LAPACK's sytrd of the lower triangle, of at least 2 columns: the diagonal and the numbers beside it; the
// reflections below those in `a`, and their scales. Both triangles of `a` are read. Its columns are aligned to 64
// bytes and `a.stride` apart, a multiple of 16 that is at least a.rows; elements behind the rows are 0.
void make_tridiagonal(const MatrixPart& a, float* diagonal, float* beside, float* scales, const Workers& workers);

}  // namespace tenon::provider::cpu
