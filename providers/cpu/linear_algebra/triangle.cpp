// A solve with a small triangle, compiled once per dispatch target. Multiples of the triangle's columns are subtracted
// from four columns at a time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/linear_algebra/triangle.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>

#include "hwy/highway.h"
#include "providers/cpu/linear_algebra/triangle.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int side = triangle_side;
constexpr int together = 4;

// The columns of a triangle without its diagonal; other elements are 0.
struct Columns {
  HWY_ALIGN float below[side][side];
  float diagonal[side];

  explicit Columns(const TriangleSolve& x) {
    for (int k = 0; k < x.rows; ++k) {
      const float* const from = x.triangle + k * x.stride;
      const int begin = x.upper ? 0 : k + 1;
      const int end = x.upper ? k : x.rows;
      std::fill_n(below[k], side, 0.0F);
      std::copy(from + begin, from + end, below[k] + begin);
      diagonal[k] = x.unit ? 1.0F : from[k];
    }
  }
};

// Element k of each column is final. Subtracts its multiple of column k from the remaining elements, which are within
// [begin, end), in whole vectors.
HWY_INLINE void eliminate(const float* HWY_RESTRICT column, const float* done, float* HWY_RESTRICT left, int begin,
                          int end) {
  const hn::CappedTag<float, side> d;
  const auto lanes = static_cast<int>(hn::Lanes(d));
  hn::Vec<decltype(d)> factors[together];
  for (int c = 0; c < together; ++c) factors[c] = hn::Set(d, done[c * side]);
  for (int i = begin / lanes * lanes; i < end; i += lanes) {
    const auto by = hn::Load(d, column + i);
    for (int c = 0; c < together; ++c) {
      float* const at = left + c * side + i;
      hn::Store(hn::NegMulAdd(by, factors[c], hn::Load(d, at)), d, at);
    }
  }
}

}  // namespace

void solve_triangle(const TriangleSolve& x) {
  const Columns columns(x);
  // `left` holds remaining elements, `done` final ones: an infinite element may turn remaining ones into NaN, but never
  // final ones.
  HWY_ALIGN float left[together * side];
  float done[together * side];
  for (int64_t first = 0; first < x.columns; first += together) {
    const auto count = static_cast<int>(std::min<int64_t>(together, x.columns - first));
    std::fill_n(left, together * side, 0.0F);
    for (int c = 0; c < count; ++c) std::copy_n(x.b + (first + c) * x.b_stride, x.rows, left + c * side);
    for (int step = 0; step < x.rows; ++step) {
      const int k = x.upper ? x.rows - 1 - step : step;
      for (int c = 0; c < together; ++c) done[c * side + k] = left[c * side + k] / columns.diagonal[k];
      eliminate(columns.below[k], done + k, left, x.upper ? 0 : k + 1, x.upper ? k : x.rows);
    }
    for (int c = 0; c < count; ++c) std::copy_n(done + c * side, x.rows, x.b + (first + c) * x.b_stride);
  }
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

TriangleKernel triangle_kernel(SimdLevel level) { return TENON_CPU_DISPATCH(level, solve_triangle); }

}  // namespace tenon::provider::cpu
#endif
