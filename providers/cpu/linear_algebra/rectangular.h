// Reduces a large matrix to bidiagonal form, on several threads.
#pragma once

#include "providers/cpu/linear_algebra/blocked.h"

namespace tenon::provider::cpu {

// Like LAPACK's gebrd for rows >= columns: writes the diagonal, and `beside`, the elements above it. The column
// reflections replace the part of `a` below the diagonal; their scales go to `left_scales`. Row reflection i goes to
// column i of `right` (n x n) from row i + 1 on; if `right` has no data, row reflections are not stored. The columns of
// `a` are aligned to 64 bytes, and a.stride is a multiple of 16 and at least a.rows. The padding after the rows must be
// 0.
void make_bidiagonal(const MatrixPart& a, float* diagonal, float* beside, float* left_scales, float* right_scales,
                     const MatrixPart& right, const Workers& workers);

}  // namespace tenon::provider::cpu
