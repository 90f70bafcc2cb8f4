// Least squares: the x of least norm among those that minimise |a x - b|.
#pragma once

#include "providers/cpu/linear_algebra/matrix.h"

namespace tenon::provider::cpu {

// Writes the solution to the first a->columns rows of `x`, which may have more rows. Singular values of at most max(m,
// n) epsilons of the largest count as 0. Overwrites `a` and `b`. Returns false if an element is not finite.
template <class T>
bool find_least_squares(Matrix<T>* a, Matrix<T>* b, Matrix<T>* x, const Workers& workers);

}  // namespace tenon::provider::cpu
