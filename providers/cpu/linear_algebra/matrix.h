// A column-major matrix, and helpers for LAPACK calls on it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "providers/cpu/linear_algebra/blocked.h"

namespace tenon::provider::cpu {

template <class T>
struct Matrix {
  int rows = 0;
  int columns = 0;
  std::vector<T> elements;

  Matrix() = default;
  Matrix(int m, int n) : rows(m), columns(n), elements(static_cast<size_t>(m) * static_cast<size_t>(n)) {}
  T* data() { return elements.data(); }
  T* column(int j) { return elements.data() + static_cast<ptrdiff_t>(j) * rows; }
  T& at(int i, int j) { return column(j)[i]; }
  int stride() const { return std::max(rows, 1); }
  bool is_finite() const {
    return std::all_of(elements.begin(), elements.end(), [](T x) { return std::isfinite(x); });
  }
};

inline MatrixPart all_of(Matrix<float>* a) { return {a->data(), a->rows, a->columns, a->stride()}; }

// Calls `function` twice: with a work length of -1, which returns the required length, then with that length.
template <class T, class Function>
int with_work(const Function& function) {
  T length = 0;
  int info = function(&length, -1);
  if (info != 0) return info;
  std::vector<T> work(static_cast<size_t>(length) + 1);
  return function(work.data(), static_cast<int>(work.size()));
}

}  // namespace tenon::provider::cpu
