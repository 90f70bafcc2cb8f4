// The kernel of convolutions over f64, compiled once per dispatch target: some rows of results by a strip of columns.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/convolution/f64_strip.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"
#include "providers/cpu/convolution/f64_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;

constexpr int vectors = 2;  // width of a strip
static_assert(vectors * hn::MaxLanes(D()) <= f64_widest_strip);

template <int rows>
HWY_INLINE void run_rows(const F64Strip& strip) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[rows][vectors];
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < vectors; ++j) {
      sums[i][j] = strip.adds ? hn::LoadU(d, strip.dst + (i * vectors + j) * lanes) : hn::Zero(d);
    }
  }
  const double* HWY_RESTRICT a = strip.a;
  const double* HWY_RESTRICT b = strip.b;
  for (int64_t p = 0; p < strip.depth; ++p) {
    V right[vectors];
    for (int j = 0; j < vectors; ++j) right[j] = hn::LoadU(d, b + j * lanes);
    for (int i = 0; i < rows; ++i) {
      const V left = hn::Set(d, a[i]);
      for (int j = 0; j < vectors; ++j) sums[i][j] = hn::MulAdd(left, right[j], sums[i][j]);
    }
    a += f64_strip_rows;
    b += vectors * lanes;
  }
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < vectors; ++j) hn::StoreU(sums[i][j], d, strip.dst + (i * vectors + j) * lanes);
  }
}

}  // namespace

void run_strip(const F64Strip& strip) {
  switch (strip.rows) {
    case 1: return run_rows<1>(strip);
    case 2: return run_rows<2>(strip);
    case 3: return run_rows<3>(strip);
    case 4: return run_rows<4>(strip);
    case 5: return run_rows<5>(strip);
    default: return run_rows<f64_strip_rows>(strip);
  }
}

F64StripKernel strip_kernel() { return {vectors * static_cast<int32_t>(hn::Lanes(D())), run_strip}; }

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

F64StripKernel f64_strip_kernel(SimdLevel level) { return TENON_CPU_DISPATCH(level, strip_kernel)(); }

}  // namespace tenon::provider::cpu
#endif
