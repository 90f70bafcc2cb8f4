// Householder reflections of a small matrix, included once per dispatch target. G. H. Golub, C. F. Van Loan: Matrix
// Computations, sections 5.1 and 5.2; signs as in LAPACK's slarfg.
#if defined(TENON_CPU_REFLECT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_REFLECT_INL_H
#undef TENON_CPU_REFLECT_INL_H
#else
#define TENON_CPU_REFLECT_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "hwy/highway.h"
#include "providers/cpu/linear_algebra/columns.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, Columns::widest>;
using V = hn::Vec<D>;

// Subtracts tau (v . column) v from each column. The elements of v outside [begin, end) are 0.
template <int count>
HWY_INLINE void reflect_columns(const float* HWY_RESTRICT v, float tau, float* HWY_RESTRICT columns, int64_t stride,
                                int begin, int end) {
  const D d;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  V factors[count];
  for (int c = 0; c < count; ++c) factors[c] = hn::Zero(d);
  for (int i = begin; i < end; i += lanes) {
    const V x = hn::Load(d, v + i);
    for (int c = 0; c < count; ++c) factors[c] = hn::MulAdd(x, hn::Load(d, columns + c * stride + i), factors[c]);
  }
  for (int c = 0; c < count; ++c) factors[c] = hn::Mul(hn::SumOfLanes(d, factors[c]), hn::Set(d, -tau));
  for (int i = begin; i < end; i += lanes) {
    const V x = hn::Load(d, v + i);
    for (int c = 0; c < count; ++c) {
      float* const at = columns + c * stride + i;
      hn::Store(hn::MulAdd(x, factors[c], hn::Load(d, at)), d, at);
    }
  }
}

HWY_MAYBE_UNUSED void reflect_all(const float* v, float tau, float* columns, int64_t stride, int first, int rows,
                                  int count) {
  if (tau == 0) return;
  const auto lanes = static_cast<int>(hn::Lanes(D()));
  const int begin = first / lanes * lanes;
  int c = 0;
  for (; c + 4 <= count; c += 4) reflect_columns<4>(v, tau, columns + c * stride, stride, begin, rows);
  for (; c < count; ++c) reflect_columns<1>(v, tau, columns + c * stride, stride, begin, rows);
}

HWY_MAYBE_UNUSED double sum_of_squares(const float* x, int n) {
  double sums[4] = {};
  int i = 0;
  for (; i + 4 <= n; i += 4) {
    for (int k = 0; k < 4; ++k) sums[k] += static_cast<double>(x[i + k]) * static_cast<double>(x[i + k]);
  }
  for (; i < n; ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Computes v, which is 1 at `first` and 0 before, and returns tau. The reflection zeroes the elements of `column` after
// `first`; column[first] gets the remaining element. Computes in double, so that squares neither overflow nor
// underflow.
HWY_MAYBE_UNUSED float find_reflection(float* column, int first, int rows, float* v) {
  const double squares = sum_of_squares(column + first + 1, rows - first - 1);
  if (squares == 0) return 0;
  const double alpha = static_cast<double>(column[first]);
  const double beta = -std::copysign(std::sqrt(alpha * alpha + squares), alpha);
  const double scale = 1 / (alpha - beta);
  v[first] = 1;
  for (int i = first + 1; i < rows; ++i) v[i] = static_cast<float>(static_cast<double>(column[i]) * scale);
  column[first] = static_cast<float>(beta);
  return static_cast<float>((beta - alpha) / beta);
}

}  // namespace
}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
