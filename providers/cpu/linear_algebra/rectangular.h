// A large matrix becomes bidiagonal, on several threads.
#pragma once

#include "providers/cpu/linear_algebra/blocked.h"

namespace tenon::provider::cpu {

// As LAPACK's gebrd of a matrix with at least as many rows as columns: the diagonal and the numbers beside it; the
// reflections of columns below the diagonal of `a`, and their scales. Reflection i of the rows becomes column i of
// `right`, n x n, from row i + 1 on; `right` without data gets none. The columns of `a` are aligned to 64 bytes and
// a.stride apart, a multiple of 16 that is at least a.rows; elements behind the rows are 0.
void make_bidiagonal(const MatrixPart& a, float* diagonal, float* beside, float* left_scales, float* right_scales,
                     const MatrixPart& right, const Workers& workers);

}  // namespace tenon::provider::cpu
