// Eigenvalues and eigenvectors of a symmetric matrix, singular values and vectors of any matrix. For f32, our kernels
// reduce the matrix to tridiagonal or bidiagonal form and transform the vectors back; LAPACK does the rest.
#pragma once

#include <vector>

#include "providers/cpu/linear_algebra/matrix.h"

namespace tenon::provider::cpu {

// Reads one triangle of `a`. Writes the eigenvalues to `values` in ascending order. With `vectors`, the columns of `a`
// become the eigenvectors; their signs are unspecified. Returns false if an element is not finite or no solution was
// found.
template <class T>
bool find_eigenvalues(Matrix<T>* a, bool upper, bool vectors, std::vector<T>* values, const Workers& workers);

// Writes the singular values to `values` in descending order, and the singular vectors to `u` and `vh` unless these are
// empty; their signs are unspecified. Overwrites `a`. Returns false like find_eigenvalues.
template <class T>
bool find_singular_values(Matrix<T>* a, std::vector<T>* values, Matrix<T>* u, Matrix<T>* vh, const Workers& workers);

}  // namespace tenon::provider::cpu
