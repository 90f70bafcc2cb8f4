// softmax of columns, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/normalization/columns.cpp"
#include "hwy/foreach_target.h"
//
#include <limits>

#include "providers/cpu/normalization/columns.h"
#include "providers/cpu/simd/prelude-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int64_t sum_rows = 256;  // exponentials that are added before the sum joins the total

// `width` vectors of columns at a time. What a column needs stays in registers; its exponentials go to the buffer,
// which lies closer together than the rows.
template <int width>
HWY_INLINE void column_vectors(float* dst, int64_t dst_stride, const float* src, int64_t src_stride, float* buffer,
                               int64_t rows, bool log) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V most[width];
  V total[width];
  for (int k = 0; k < width; ++k) {
    most[k] = hn::Set(d, -std::numeric_limits<float>::infinity());
    total[k] = hn::Zero(d);
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int k = 0; k < width; ++k) most[k] = hn::Max(most[k], hn::LoadU(d, src + row * src_stride + k * lanes));
  }
  for (int64_t begin = 0; begin < rows; begin += sum_rows) {
    V sum[width];
    for (int k = 0; k < width; ++k) sum[k] = hn::Zero(d);
    for (int64_t row = begin; row < rows && row < begin + sum_rows; ++row) {
      for (int k = 0; k < width; ++k) {
        const V y = exp_of_nonpositive(hn::Sub(hn::LoadU(d, src + row * src_stride + k * lanes), most[k]));
        hn::StoreU(y, d, buffer + (row * width + k) * lanes);
        sum[k] = hn::Add(sum[k], y);
      }
    }
    for (int k = 0; k < width; ++k) total[k] = hn::Add(total[k], sum[k]);
  }
  for (int k = 0; k < width; ++k) total[k] = log ? ep_log(total[k]) : hn::Div(hn::Set(d, 1.0f), total[k]);
  for (int64_t row = 0; row < rows; ++row) {
    for (int k = 0; k < width; ++k) {
      const V x = log ? hn::Sub(hn::Sub(hn::LoadU(d, src + row * src_stride + k * lanes), most[k]), total[k])
                      : hn::Mul(hn::LoadU(d, buffer + (row * width + k) * lanes), total[k]);
      hn::StoreU(x, d, dst + row * dst_stride + k * lanes);
    }
  }
}

// The columns that are left over, in vectors of their own.
HWY_INLINE void few_columns(float* dst, int64_t dst_stride, const float* src, int64_t src_stride, float* buffer,
                            int64_t rows, int64_t n, bool log) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  float* padded = buffer + rows * lanes;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t j = 0; j < lanes; ++j) padded[row * lanes + j] = j < n ? src[row * src_stride + j] : 0.0f;
  }
  column_vectors<1>(padded, lanes, padded, lanes, buffer, rows, log);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t j = 0; j < n; ++j) dst[row * dst_stride + j] = padded[row * lanes + j];
  }
}

}  // namespace

void columns(float* dst, int64_t dst_stride, const float* src, int64_t src_stride, float* buffer, int64_t rows,
             int64_t n, bool log) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t j = 0;
  for (; j + 4 * lanes <= n; j += 4 * lanes)
    column_vectors<4>(dst + j, dst_stride, src + j, src_stride, buffer, rows, log);
  for (; j + lanes <= n; j += lanes) column_vectors<1>(dst + j, dst_stride, src + j, src_stride, buffer, rows, log);
  if (j < n) few_columns(dst + j, dst_stride, src + j, src_stride, buffer, rows, n - j, log);
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

SoftmaxColumns softmax_columns_kernel(SimdLevel level) { return TENON_CPU_DISPATCH(level, columns); }

}  // namespace tenon::provider::cpu
#endif
