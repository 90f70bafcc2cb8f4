// The least x with the least |a x - b|.
#pragma once

#include "providers/cpu/linear_algebra/matrix.h"

namespace tenon::provider::cpu {

// `x` becomes a matrix of at least a->columns rows, whose first ones are the solution. Singular values of at most
// max(m, n) epsilons of the greatest count as 0. `a` and `b` are lost. False: a number is not finite.
template <class T>
bool find_least_squares(Matrix<T>* a, Matrix<T>* b, Matrix<T>* x, const Workers& workers);

}  // namespace tenon::provider::cpu
