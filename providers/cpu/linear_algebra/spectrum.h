// Eigenvalues of a symmetric matrix and singular values of any matrix, with their vectors. Over f32 our own kernels
// make the matrix tridiagonal or bidiagonal and reflect vectors back; LAPACK finds what belongs to such a matrix, and
// does the rest.
#pragma once

#include <vector>

#include "providers/cpu/linear_algebra/matrix.h"

namespace tenon::provider::cpu {

// One triangle of `a` is read. `values` get the eigenvalues, from the least on; with `vectors` the columns of `a`
// become their vectors, whose signs are open. False: a number is not finite, or no solution was found.
template <class T>
bool find_eigenvalues(Matrix<T>* a, bool upper, bool vectors, std::vector<T>* values, const Workers& workers);

// `values` get the singular values, from the greatest on, and `u` and `vh`, unless they are empty, the vectors, whose
// signs are open. `a` is lost. False: as above.
template <class T>
bool find_singular_values(Matrix<T>* a, std::vector<T>* values, Matrix<T>* u, Matrix<T>* vh, const Workers& workers);

}  // namespace tenon::provider::cpu
