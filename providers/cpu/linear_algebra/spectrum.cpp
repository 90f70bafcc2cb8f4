#include "providers/cpu/linear_algebra/spectrum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "providers/cpu/linear_algebra/bidiagonal.h"
#include "providers/cpu/linear_algebra/columns.h"
#include "providers/cpu/linear_algebra/lapack.h"
#include "providers/cpu/linear_algebra/rectangular.h"
#include "providers/cpu/linear_algebra/symmetric.h"
#include "providers/cpu/linear_algebra/tridiagonal.h"

namespace tenon::provider::cpu {
namespace {

constexpr int tile = 16;  // side of a tile of a transpose, so that both sides stay in the L1 cache

// Calls body(i, j) for all rows i and columns j, tile by tile.
template <class Body>
void for_tiles(int rows, int columns, const Body& body) {
  for (int left = 0; left < columns; left += tile) {
    for (int top = 0; top < rows; top += tile) {
      for (int j = left; j < std::min(left + tile, columns); ++j) {
        for (int i = top; i < std::min(top + tile, rows); ++i) body(i, j);
      }
    }
  }
}

template <class T>
Matrix<T> turned(Matrix<T>* a) {
  Matrix<T> result(a->columns, a->rows);
  for_tiles(a->rows, a->columns, [&](int i, int j) { result.at(j, i) = a->at(i, j); });
  return result;
}

// Copies the triangle that was given to the other one.
template <class T>
void mirror(Matrix<T>* a, bool upper) {
  for_tiles(a->rows, a->columns, [&](int i, int j) {
    if (upper ? i > j : i < j) a->at(i, j) = a->at(j, i);
  });
}

// Scales elements whose squares would overflow or underflow. Returns the exponent of the factor, a power of 2.
template <class T>
int make_moderate(Matrix<T>* a) {
  T greatest = 0;
  for (const T x : a->elements) greatest = std::max(greatest, std::abs(x));
  const int exponent = greatest == 0 ? 0 : std::ilogb(greatest);
  if (std::abs(exponent) < std::numeric_limits<T>::max_exponent / 4) return 0;
  for (T& x : a->elements) x = std::ldexp(x, -exponent);
  return -exponent;
}

template <class T>
void undo(int exponent, std::vector<T>* values) {
  if (exponent == 0) return;
  for (T& x : *values) x = std::ldexp(x, -exponent);
}

bool eigenvalues_by_lapack(Matrix<double>* a, bool vectors, std::vector<double>* values) {
  std::vector<int> integers(static_cast<size_t>(5 * a->rows + 3));
  const auto integers_length = static_cast<int>(integers.size());
  int info = 0;
  with_work<double>([&](double* work, int length) {
    const int lda = a->stride();
    const int asked = length < 0 ? -1 : integers_length;
    Lapack<double>::syevd(vectors ? "V" : "N", "L", &a->rows, a->data(), &lda, values->data(), work, &length,
                          integers.data(), &asked, &info, 1, 1);
    return info;
  });
  return info == 0;
}

// Like syevd, but our kernels reduce the matrix to tridiagonal form, and products transform the vectors back.
bool factored_eigenvalues(Matrix<float>* a, bool vectors, std::vector<float>* values, const Workers& workers) {
  const int n = a->rows;
  if (vectors && n <= most_rotated) return eigen_kernel(workers.simd)({a->data(), n}, values->data());
  std::vector<float> beside(static_cast<size_t>(n)), scales(static_cast<size_t>(n));
  Columns columns(n, n > most_tridiagonal ? n : 0);
  MatrixPart reduced = all_of(a);
  if (n <= most_tridiagonal) {
    reduce_kernel(workers.simd)({a->data(), n}, values->data(), beside.data(), scales.data());
  } else {
    for (int j = 0; j < n; ++j) std::copy_n(a->column(j), n, columns.at(j));
    reduced = {columns.at(0), n, n, static_cast<int>(columns.stride())};
    make_tridiagonal(reduced, values->data(), beside.data(), scales.data(), workers);
  }
  int info = 0;
  if (!vectors) {
    Lapack<float>::sterf(&n, values->data(), beside.data(), &info);
    return info == 0;
  }
  Matrix<float> found(n, n);
  std::vector<int> integers(static_cast<size_t>(5 * n + 3));
  const auto integers_length = static_cast<int>(integers.size());
  with_work<float>([&](float* work, int length) {
    const int asked = length < 0 ? -1 : integers_length;
    Lapack<float>::stedc("I", &n, values->data(), beside.data(), found.data(), &n, work, &length, integers.data(),
                         &asked, &info, 1);
    return info;
  });
  if (info != 0) return false;
  reflect_by_blocks(reduced.part(1, 0, n - 1, n - 1), scales.data(), Reflect::plain,
                    all_of(&found).part(1, 0, n - 1, n), workers);
  *a = std::move(found);
  return true;
}

template <class T>
bool singular_values_by_lapack(Matrix<T>* a, std::vector<T>* values, Matrix<T>* u, Matrix<T>* vh) {
  std::vector<int> integers(8 * values->size());
  int info = 0;
  with_work<T>([&](T* work, int length) {
    const int lda = a->stride();
    const int ldu = u->stride();
    const int ldvh = vh->stride();
    Lapack<T>::gesdd(u->columns > 0 ? "S" : "N", &a->rows, &a->columns, a->data(), &lda, values->data(), u->data(),
                     &ldu, vh->data(), &ldvh, work, &length, integers.data(), &info, 1);
    return info;
  });
  return info == 0;
}

// Like gesdd for rows >= columns, but our kernels reduce the matrix to bidiagonal form, and kernels or products
// transform the vectors back.
bool factored_singular_values(Matrix<float>* a, std::vector<float>* values, Matrix<float>* u, Matrix<float>* vh,
                              const Workers& workers) {
  const int m = a->rows;
  const int n = a->columns;
  const auto count = static_cast<size_t>(n);
  std::vector<float> beside(count), left_scales(count), right_scales(count), work(4 * count * (count + 2));
  const bool small = m <= most_bidiagonal;
  const SmallBidiagonal form = {a->data(),          m, n, values->data(), beside.data(), left_scales.data(),
                                right_scales.data()};
  Columns columns(m, small ? 0 : n);
  Columns row_reflections(n, small || u->columns == 0 ? 0 : n);
  const MatrixPart reduced = {columns.at(0), m, n, static_cast<int>(columns.stride())};
  const MatrixPart right = {u->columns == 0 ? nullptr : row_reflections.at(0), n, n,
                            static_cast<int>(row_reflections.stride())};
  if (small) {
    bidiagonal_kernel(workers.simd)(form);
  } else {
    for (int j = 0; j < n; ++j) std::copy_n(a->column(j), m, columns.at(j));
    make_bidiagonal(reduced, values->data(), beside.data(), left_scales.data(), right_scales.data(), right, workers);
  }
  int info = 0;
  if (u->columns == 0) {
    const int none = 0, one = 1;
    Lapack<float>::bdsqr("U", &n, &none, &none, &none, values->data(), beside.data(), nullptr, &one, nullptr, &one,
                         nullptr, &one, work.data(), &info, 1);
    return info == 0;
  }
  std::vector<int> integers(8 * count);
  Lapack<float>::bdsdc("U", "I", &n, values->data(), beside.data(), u->data(), &m, vh->data(), &n, nullptr, nullptr,
                       work.data(), integers.data(), &info, 1, 1);
  if (info != 0) return false;
  if (small) {
    reflect_kernel(workers.simd)(form, u->data(), vh->data());
    return true;
  }
  reflect_by_blocks(reduced, left_scales.data(), Reflect::plain, all_of(u), workers);
  reflect_by_blocks(right.part(1, 0, n - 1, n - 1), right_scales.data(), Reflect::turned_from_right,
                    all_of(vh).part(0, 1, n, n - 1), workers);
  return true;
}

// For rows >= columns. A tall matrix has the same singular values as its R.
bool tall_singular_values(Matrix<float>* a, std::vector<float>* values, Matrix<float>* u, Matrix<float>* vh,
                          const Workers& workers) {
  const int n = a->columns;
  if (a->rows < 2 * n || a->rows <= most_bidiagonal) return factored_singular_values(a, values, u, vh, workers);
  Matrix<float> q(a->rows, n), r(n, n);
  factor_by_blocks(all_of(a), all_of(&q), workers);
  for (int j = 0; j < n; ++j) std::copy_n(a->column(j), j + 1, r.column(j));
  Matrix<float> of_r(u->columns, u->columns);
  if (!factored_singular_values(&r, values, &of_r, vh, workers)) return false;
  if (u->columns > 0) multiply_matrices(all_of(&q), all_of(&of_r), all_of(u), workers);
  return true;
}

}  // namespace

template <class T>
bool find_eigenvalues(Matrix<T>* a, bool upper, bool vectors, std::vector<T>* values, const Workers& workers) {
  mirror(a, upper);
  if (!a->is_finite()) return false;
  const int exponent = make_moderate(a);
  bool good = false;
  if constexpr (std::is_same_v<T, float>) {
    good = factored_eigenvalues(a, vectors, values, workers);
  } else {
    good = eigenvalues_by_lapack(a, vectors, values);
  }
  undo(exponent, values);
  return good;
}

template <class T>
bool find_singular_values(Matrix<T>* a, std::vector<T>* values, Matrix<T>* u, Matrix<T>* vh, const Workers& workers) {
  if (!a->is_finite()) return false;
  if constexpr (std::is_same_v<T, float>) {
    if (std::max(a->rows, a->columns) <= most_bidiagonal || std::min(a->rows, a->columns) >= least_halved) {
      const int exponent = make_moderate(a);
      bool good = false;
      if (a->rows >= a->columns) {
        good = tall_singular_values(a, values, u, vh, workers);
      } else {
        Matrix<T> other = turned(a), left(vh->columns, vh->rows), right(u->columns, u->rows);
        good = tall_singular_values(&other, values, &left, &right, workers);
        *u = turned(&right);
        *vh = turned(&left);
      }
      undo(exponent, values);
      return good;
    }
  }
  return singular_values_by_lapack(a, values, u, vh);
}

template bool find_eigenvalues(Matrix<float>*, bool, bool, std::vector<float>*, const Workers&);
template bool find_eigenvalues(Matrix<double>*, bool, bool, std::vector<double>*, const Workers&);
template bool find_singular_values(Matrix<float>*, std::vector<float>*, Matrix<float>*, Matrix<float>*, const Workers&);
template bool find_singular_values(Matrix<double>*, std::vector<double>*, Matrix<double>*, Matrix<double>*,
                                   const Workers&);

}  // namespace tenon::provider::cpu
