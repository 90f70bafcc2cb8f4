// Reduces a large symmetric matrix to tridiagonal form, on several threads.
#pragma once

#include "providers/cpu/linear_algebra/blocked.h"

namespace tenon::provider::cpu {

// Like LAPACK's sytrd for the lower triangle, for at least 2 columns: writes the diagonal, and `beside`, the elements
// below it. The reflections replace the rest of the lower triangle of `a`; their scales go to `scales`. Reads both
// triangles of `a`. The columns of `a` are aligned to 64 bytes, and a.stride is a multiple of 16 and at least a.rows.
// The padding after the rows must be 0.
void make_tridiagonal(const MatrixPart& a, float* diagonal, float* beside, float* scales, const Workers& workers);

}  // namespace tenon::provider::cpu
