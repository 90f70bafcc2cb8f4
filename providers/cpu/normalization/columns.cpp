// softmax of columns, and of rows of doubles, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/normalization/columns.cpp"
#include "hwy/foreach_target.h"
//
#include <cmath>
#include <limits>

#include "providers/cpu/normalization/columns.h"
#include "providers/cpu/simd/prelude-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

template <class T>
using D = hn::ScalableTag<T>;
template <class T>
using V = hn::Vec<D<T>>;

constexpr int64_t sum_rows = 256;  // rows whose exponentials are summed before the sum is added to the total

// Processes `width` vectors of columns at a time. Maxima and sums stay in registers. Exponentials go to the buffer,
// which is more compact than the rows.
template <int width, class T>
HWY_INLINE void column_vectors(T* dst, int64_t dst_stride, const T* src, int64_t src_stride, T* buffer, int64_t rows,
                               bool log) {
  const D<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V<T> most[width];
  V<T> total[width];
  for (int k = 0; k < width; ++k) {
    most[k] = hn::Set(d, -std::numeric_limits<T>::infinity());
    total[k] = hn::Zero(d);
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int k = 0; k < width; ++k) most[k] = hn::Max(most[k], hn::LoadU(d, src + row * src_stride + k * lanes));
  }
  for (int64_t begin = 0; begin < rows; begin += sum_rows) {
    V<T> sum[width];
    for (int k = 0; k < width; ++k) sum[k] = hn::Zero(d);
    for (int64_t row = begin; row < rows && row < begin + sum_rows; ++row) {
      for (int k = 0; k < width; ++k) {
        const V<T> y = exp_of_nonpositive(hn::Sub(hn::LoadU(d, src + row * src_stride + k * lanes), most[k]));
        hn::StoreU(y, d, buffer + (row * width + k) * lanes);
        sum[k] = hn::Add(sum[k], y);
      }
    }
    for (int k = 0; k < width; ++k) total[k] = hn::Add(total[k], sum[k]);
  }
  for (int k = 0; k < width; ++k) total[k] = log ? ep_log(total[k]) : hn::Div(hn::Set(d, T{1}), total[k]);
  for (int64_t row = 0; row < rows; ++row) {
    for (int k = 0; k < width; ++k) {
      const V<T> x = log ? hn::Sub(hn::Sub(hn::LoadU(d, src + row * src_stride + k * lanes), most[k]), total[k])
                         : hn::Mul(hn::LoadU(d, buffer + (row * width + k) * lanes), total[k]);
      hn::StoreU(x, d, dst + row * dst_stride + k * lanes);
    }
  }
}

// Processes the remaining columns, with partial vectors.
template <class T>
HWY_INLINE void few_columns(T* dst, int64_t dst_stride, const T* src, int64_t src_stride, T* buffer, int64_t rows,
                            int64_t n, bool log) {
  const D<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  T* padded = buffer + rows * lanes;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t j = 0; j < lanes; ++j) padded[row * lanes + j] = j < n ? src[row * src_stride + j] : T{0};
  }
  column_vectors<1>(padded, lanes, padded, lanes, buffer, rows, log);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t j = 0; j < n; ++j) dst[row * dst_stride + j] = padded[row * lanes + j];
  }
}

template <class T>
void columns_of(T* dst, int64_t dst_stride, const T* src, int64_t src_stride, T* buffer, int64_t rows, int64_t n,
                bool log) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D<T>()));
  int64_t j = 0;
  for (; j + 4 * lanes <= n; j += 4 * lanes)
    column_vectors<4>(dst + j, dst_stride, src + j, src_stride, buffer, rows, log);
  for (; j + lanes <= n; j += lanes) column_vectors<1>(dst + j, dst_stride, src + j, src_stride, buffer, rows, log);
  if (j < n) few_columns(dst + j, dst_stride, src + j, src_stride, buffer, rows, n - j, log);
}

// softmax of one row of doubles.
void row_of(double* dst, const double* src, int64_t n, bool log) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  const D<double> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = n - n % lanes;
  const auto rest = hn::FirstN(d, static_cast<size_t>(n - whole));
  const V<double> least = hn::Set(d, -std::numeric_limits<double>::infinity());
  const auto last = [&](const double* from)
                        HWY_ATTR { return hn::IfThenElse(rest, hn::MaskedLoad(rest, d, from + whole), least); };
  V<double> greatest = least;
  for (int64_t i = 0; i < whole; i += lanes) greatest = hn::Max(greatest, hn::LoadU(d, src + i));
  const V<double> most = hn::MaxOfLanes(d, hn::Max(greatest, last(src)));
  V<double> sum = hn::Zero(d);
  const V<double> tail = hn::IfThenElseZero(rest, exp_of_nonpositive(hn::Sub(last(src), most)));
  const V<double> tail_value = hn::Sub(last(src), most);
  for (int64_t i = 0; i < whole; i += lanes) {
    const V<double> off = hn::Sub(hn::LoadU(d, src + i), most);
    const V<double> y = exp_of_nonpositive(off);
    hn::StoreU(log ? off : y, d, dst + i);
    sum = hn::Add(sum, y);
  }
  const V<double> total = hn::SumOfLanes(d, hn::Add(sum, tail));
  const V<double> shift = log ? ep_log(total) : hn::Div(hn::Set(d, 1.0), total);
  const auto finished = [&](V<double> x) HWY_ATTR { return log ? hn::Sub(x, shift) : hn::Mul(x, shift); };
  for (int64_t i = 0; i < whole; i += lanes) hn::StoreU(finished(hn::LoadU(d, dst + i)), d, dst + i);
  hn::BlendedStore(finished(log ? tail_value : tail), rest, d, dst + whole);
#else
  double most = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) most = std::fmax(most, src[i]);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(src[i] - most);
  const double log_sum = std::log(sum);
  for (int64_t i = 0; i < n; ++i) dst[i] = log ? src[i] - most - log_sum : std::exp(src[i] - most) / sum;
#endif
}

}  // namespace

SoftmaxKernels softmax_functions() {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return {columns_of<float>, columns_of<double>, row_of};
#else
  return {columns_of<float>, nullptr, row_of};
#endif
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

SoftmaxKernels softmax_kernels(SimdLevel level) { return TENON_CPU_DISPATCH(level, softmax_functions)(); }

}  // namespace tenon::provider::cpu
#endif
