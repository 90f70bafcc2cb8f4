// The bidiagonal form of a small matrix, compiled once per dispatch target (G. H. Golub, C. F. Van Loan: Matrix
// Computations, section 5.4.8). Each step makes two passes over the remaining columns. The first subtracts the row
// reflection of the previous step and computes products with the new column reflection. The second subtracts the column
// reflection and computes products with the new row reflection.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/linear_algebra/bidiagonal.cpp"
#include "hwy/foreach_target.h"
//
#include "providers/cpu/linear_algebra/bidiagonal.h"
#include "providers/cpu/linear_algebra/reflect-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

// Subtracts factors[c] times `what` from each of `count` columns. lengths[c] = product of the new column and `along`.
template <int count>
HWY_INLINE void subtract_and_measure(const float* what, const float* factors, const float* along, float* HWY_RESTRICT a,
                                     int64_t stride, int begin, int end, float* lengths) {
  const D d;
  V by[count], sums[count];
  for (int c = 0; c < count; ++c) {
    by[c] = hn::Set(d, factors[c]);
    sums[c] = hn::Zero(d);
  }
  for (int i = begin; i < end; i += static_cast<int>(hn::Lanes(d))) {
    const V x = hn::Load(d, what + i);
    const V y = hn::Load(d, along + i);
    for (int c = 0; c < count; ++c) {
      float* const at = a + c * stride + i;
      const V left = hn::NegMulAdd(x, by[c], hn::Load(d, at));
      hn::Store(left, d, at);
      sums[c] = hn::MulAdd(left, y, sums[c]);
    }
  }
  for (int c = 0; c < count; ++c) lengths[c] = hn::GetLane(hn::SumOfLanes(d, sums[c]));
}

// Subtracts factors[c] times `what` from each of `count` columns, then products += columns times `next`.
template <int count>
HWY_INLINE void subtract_and_multiply(const float* what, const float* factors, const float* next,
                                      float* HWY_RESTRICT products, float* HWY_RESTRICT a, int64_t stride, int begin,
                                      int end) {
  const D d;
  V by[count], times[count];
  for (int c = 0; c < count; ++c) {
    by[c] = hn::Set(d, factors[c]);
    times[c] = hn::Set(d, next[c]);
  }
  for (int i = begin; i < end; i += static_cast<int>(hn::Lanes(d))) {
    const V x = hn::Load(d, what + i);
    V sum = hn::Load(d, products + i);
    for (int c = 0; c < count; ++c) {
      float* const at = a + c * stride + i;
      const V left = hn::NegMulAdd(x, by[c], hn::Load(d, at));
      hn::Store(left, d, at);
      sum = hn::MulAdd(left, times[c], sum);
    }
    hn::Store(sum, d, products + i);
  }
}

// Processes the columns from `first` on. `factors` and `lengths` are indexed over all columns.
void measure_all(const float* what, const float* factors, const float* along, Columns* a, int first, int n, int begin,
                 int end, float* lengths) {
  int j = first;
  for (; j + 4 <= n; j += 4)
    subtract_and_measure<4>(what, factors + j, along, a->at(j), a->stride(), begin, end, lengths + j);
  for (; j < n; ++j) subtract_and_measure<1>(what, factors + j, along, a->at(j), a->stride(), begin, end, lengths + j);
}

// products = scale * (columns from `first` on) * next.
void multiply_all(const float* what, const float* factors, const float* next, float scale, Columns* a, int first, int n,
                  int begin, int end, float* products) {
  const D d;
  std::fill_n(products, a->stride(), 0.0F);
  int j = first;
  for (; j + 4 <= n; j += 4)
    subtract_and_multiply<4>(what, factors + j, next + j, products, a->at(j), a->stride(), begin, end);
  for (; j < n; ++j) subtract_and_multiply<1>(what, factors + j, next + j, products, a->at(j), a->stride(), begin, end);
  for (int i = begin; i < end; i += static_cast<int>(hn::Lanes(d))) {
    hn::Store(hn::Mul(hn::Load(d, products + i), hn::Set(d, scale)), d, products + i);
  }
}

}  // namespace

void make_bidiagonal(const SmallBidiagonal& x) {
  const D d;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  const int m = x.rows;
  const int n = x.columns;
  Columns a(m, n), left(m, n), rows(n, n + 1), products(m, 1);
  for (int j = 0; j < n; ++j) std::copy_n(x.a + int64_t{j} * m, m, a.at(j));
  float* const product = products.at(0);
  float* const row = rows.at(n);
  float factors[most_bidiagonal];
  const float* last = rows.at(n);  // the row reflection of the previous step; zeros at first
  for (int k = 0; k < n; ++k) {
    const int begin = k / lanes * lanes;
    float* const column = a.at(k);
    for (int i = begin; i < m; i += lanes) {
      hn::Store(hn::NegMulAdd(hn::Load(d, product + i), hn::Set(d, last[k]), hn::Load(d, column + i)), d, column + i);
    }
    float* const u = left.at(k);
    const float scale = find_reflection(column, k, m, u);
    x.left_scales[k] = scale;
    x.diagonal[k] = column[k];
    if (k + 1 == n) {
      x.right_scales[k] = 0;
      break;
    }
    measure_all(product, last, u, &a, k + 1, n, begin, m, factors);
    for (int j = k + 1; j < n; ++j) {
      factors[j] *= scale;
      row[j] = a.at(j)[k] - factors[j];
    }
    float* const v = rows.at(k);
    const float row_scale = find_reflection(row, k + 1, n, v);
    x.right_scales[k] = row_scale;
    x.beside[k] = row[k + 1];
    multiply_all(u, factors, v, row_scale, &a, k + 1, n, begin, m, product);
    last = v;
  }
  for (int j = 0; j < n; ++j) {
    float* const to = x.a + int64_t{j} * m;
    for (int i = 0; i + 1 < j; ++i) to[i] = rows.at(i)[j];
    std::copy_n(left.at(j) + j + 1, m - j - 1, to + j + 1);
  }
}

void reflect_vectors(const SmallBidiagonal& x, float* u, float* vh) {
  const int m = x.rows;
  const int n = x.columns;
  Columns vectors(m, n + 1), rows(n, n + 1);
  for (int j = 0; j < n; ++j) {
    std::copy_n(u + int64_t{j} * m, m, vectors.at(j));
    for (int i = 0; i < n; ++i) rows.at(j)[i] = vh[j + int64_t{i} * n];
  }
  float* const v = vectors.at(n);  // zeros before the first element of the reflection
  float* const w = rows.at(n);
  for (int k = n - 1; k >= 0; --k) {
    const float* const below = x.a + int64_t{k} * m;
    v[k] = 1;
    std::copy(below + k + 1, below + m, v + k + 1);
    reflect_all(v, x.left_scales[k], vectors.at(0), vectors.stride(), k, m, n);
    v[k] = 0;
    if (k + 1 == n) continue;
    w[k + 1] = 1;
    for (int j = k + 2; j < n; ++j) w[j] = x.a[k + int64_t{j} * m];
    reflect_all(w, x.right_scales[k], rows.at(0), rows.stride(), k + 1, n, n);
    w[k + 1] = 0;
  }
  for (int j = 0; j < n; ++j) {
    std::copy_n(vectors.at(j), m, u + int64_t{j} * m);
    for (int i = 0; i < n; ++i) vh[j + int64_t{i} * n] = rows.at(j)[i];
  }
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

BidiagonalKernel bidiagonal_kernel(SimdLevel level) { return TENON_CPU_DISPATCH(level, make_bidiagonal); }
ReflectKernel reflect_kernel(SimdLevel level) { return TENON_CPU_DISPATCH(level, reflect_vectors); }

}  // namespace tenon::provider::cpu
#endif
