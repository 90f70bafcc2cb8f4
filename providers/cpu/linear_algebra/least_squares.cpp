#include "providers/cpu/linear_algebra/least_squares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "providers/cpu/linear_algebra/lapack.h"

namespace tenon::provider::cpu {
namespace {

template <class T>
T least_ratio(const Matrix<T>& a) {
  return std::numeric_limits<T>::epsilon() * static_cast<T>(std::max(a.rows, a.columns));
}

template <class T>
bool by_lapack(Matrix<T>* a, Matrix<T>* b, Matrix<T>* x) {
  const int longer = std::max(a->rows, a->columns);
  *x = Matrix<T>(longer, b->columns);
  for (int j = 0; j < b->columns; ++j) std::copy_n(b->column(j), b->rows, x->column(j));
  const T least = least_ratio(*a);
  int rank = 0;
  int info = 0;
  std::vector<int> pivots(static_cast<size_t>(a->columns));  // gelsy: 0 means that the column may be moved
  const auto run = [&](T* work, int length) {
    const int lda = a->stride();
    Lapack<T>::gelsy(&a->rows, &a->columns, &b->columns, a->data(), &lda, x->data(), &longer, pivots.data(), &least,
                     &rank, work, &length, &info);
    return info;
  };
  return with_work<T>(run) == 0;
}

float greatest_of(const Matrix<float>& a) {
  float greatest = 0;
  for (const float x : a.elements) greatest = std::max(greatest, std::abs(x));
  return greatest;
}

// True if sums of squares and of products stay within f32. LAPACK scales other matrices.
bool are_moderate(const Matrix<float>& a, const Matrix<float>& b) {
  const float greatest = greatest_of(a);
  return greatest > 0x1p-40F && greatest < 0x1p40F && greatest_of(b) < 0x1p80F;
}

// True if gelsy would find that the triangle of `r` has full rank: the estimated ratio of greatest and least singular
// value stays within the limit while columns are added (C. H. Bischof, Incremental condition estimation, 1990).
bool has_full_rank(Matrix<float>* r, float least) {
  const int n = r->columns;
  std::vector<float> for_least(static_cast<size_t>(n)), for_greatest(static_cast<size_t>(n));
  float smallest = std::abs(r->at(0, 0)), greatest = smallest;
  if (smallest == 0) return false;
  for_least[0] = for_greatest[0] = 1;
  for (int i = 1; i < n; ++i) {
    const int with_greatest = 1, with_least = 2;
    float next_smallest = 0, next_greatest = 0, sines[2], cosines[2];
    Lapack<float>::laic1(&with_least, &i, for_least.data(), &smallest, r->column(i), &r->at(i, i), &next_smallest,
                         &sines[0], &cosines[0]);
    Lapack<float>::laic1(&with_greatest, &i, for_greatest.data(), &greatest, r->column(i), &r->at(i, i), &next_greatest,
                         &sines[1], &cosines[1]);
    if (!(next_greatest * least <= next_smallest)) return false;
    for (int k = 0; k < i; ++k) {
      for_least[static_cast<size_t>(k)] *= sines[0];
      for_greatest[static_cast<size_t>(k)] *= sines[1];
    }
    for_least[static_cast<size_t>(i)] = cosines[0];
    for_greatest[static_cast<size_t>(i)] = cosines[1];
    smallest = next_smallest;
    greatest = next_greatest;
  }
  return true;
}

// Like gelsy for independent columns of `a`, but computes Q' b and the triangular solve as products. Returns false if
// the columns are not independent; only `a` is then changed.
bool by_products(Matrix<float>* a, Matrix<float>* b, Matrix<float>* x, const Workers& workers) {
  const int n = a->columns;
  std::vector<int> order(static_cast<size_t>(n));
  std::vector<float> scales(static_cast<size_t>(n));
  int info = 0;
  with_work<float>([&](float* work, int length) {
    const int lda = a->stride();
    Lapack<float>::geqp3(&a->rows, &n, a->data(), &lda, order.data(), scales.data(), work, &length, &info);
    return info;
  });
  if (info != 0 || !has_full_rank(a, least_ratio(*a))) return false;
  reflect_by_blocks(all_of(a), scales.data(), Reflect::turned, all_of(b), workers);
  const MatrixPart solution = all_of(b).part(0, 0, n, b->columns);
  solve_by_halves(true, false, all_of(a).part(0, 0, n, n), solution, workers);
  *x = Matrix<float>(n, b->columns);
  for (int j = 0; j < b->columns; ++j) {
    for (int i = 0; i < n; ++i) x->at(order[static_cast<size_t>(i)] - 1, j) = b->at(i, j);
  }
  return true;
}

}  // namespace

template <class T>
bool find_least_squares(Matrix<T>* a, Matrix<T>* b, Matrix<T>* x, const Workers& workers) {
  if (!a->is_finite() || !b->is_finite()) return false;
  if constexpr (std::is_same_v<T, float>) {
    const bool large = a->columns >= least_halved && b->columns >= least_halved_columns && a->rows >= a->columns;
    if (large && are_moderate(*a, *b)) {
      Matrix<T> factors = *a;
      if (by_products(&factors, b, x, workers)) return true;
    }
  }
  return by_lapack(a, b, x);
}

template bool find_least_squares(Matrix<float>*, Matrix<float>*, Matrix<float>*, const Workers&);
template bool find_least_squares(Matrix<double>*, Matrix<double>*, Matrix<double>*, const Workers&);

}  // namespace tenon::provider::cpu
