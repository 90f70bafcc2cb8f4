// The kernels of linear and cubic interpolation, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/resize/kernels.cpp"
#include "hwy/foreach_target.h"
//
#include <type_traits>

#include "hwy/highway.h"
#include "providers/cpu/resize/kernel.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// kTaps: their number; 0: any.
template <int kTaps, class T>
void blend_rows(T* HWY_RESTRICT dst, const T* HWY_RESTRICT src, const int64_t* offsets, const T* weights, int64_t taps,
                int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t count = kTaps == 0 ? taps : kTaps;
  int64_t c = 0;
  for (; c + lanes <= n; c += lanes) {
    auto sum = hn::Mul(hn::Set(d, weights[0]), hn::LoadU(d, src + offsets[0] + c));
    for (int64_t k = 1; k < count; ++k) {
      sum = hn::MulAdd(hn::Set(d, weights[k]), hn::LoadU(d, src + offsets[k] + c), sum);
    }
    hn::StoreU(sum, d, dst + c);
  }
  for (; c < n; ++c) {
    T sum = weights[0] * src[offsets[0] + c];
    for (int64_t k = 1; k < count; ++k) sum += weights[k] * src[offsets[k] + c];
    dst[c] = sum;
  }
}

template <class T>
void rows(T* dst, const T* src, const int64_t* offsets, const T* weights, int64_t taps, int64_t n) {
  (taps == 2 ? blend_rows<2, T> : blend_rows<0, T>)(dst, src, offsets, weights, taps, n);
}

// The elements of src at four, eight or sixteen offsets; for double at half as many.
template <class T>
HWY_INLINE hn::Vec<hn::ScalableTag<T>> gathered(const T* src, const int32_t* offsets) {
  const hn::ScalableTag<T> d;
  const hn::Rebind<int32_t, decltype(d)> narrow;
  if constexpr (std::is_same_v<T, float>) {
    return hn::GatherIndex(d, src, hn::LoadU(narrow, offsets));
  } else {
    return hn::GatherIndex(d, src, hn::PromoteTo(hn::RebindToSigned<decltype(d)>(), hn::LoadU(narrow, offsets)));
  }
}

template <class T>
void places(T* HWY_RESTRICT dst, const T* HWY_RESTRICT src, const int32_t* offsets, const T* weights, int64_t taps,
            int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= n; c += lanes) {
    auto sum = hn::Mul(hn::LoadU(d, weights + c), gathered(src, offsets + c));
    for (int64_t k = 1; k < taps; ++k) {
      sum = hn::MulAdd(hn::LoadU(d, weights + k * n + c), gathered(src, offsets + k * n + c), sum);
    }
    hn::StoreU(sum, d, dst + c);
  }
  for (; c < n; ++c) {
    T sum = weights[c] * src[offsets[c]];
    for (int64_t k = 1; k < taps; ++k) sum += weights[k * n + c] * src[offsets[k * n + c]];
    dst[c] = sum;
  }
}

}  // namespace

BlendKernels<float> blend_kernels_f32() { return {rows<float>, places<float>}; }
BlendKernels<double> blend_kernels_f64() { return {rows<double>, places<double>}; }

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

template <>
BlendKernels<float> blend_kernels<float>(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, blend_kernels_f32)();
}
template <>
BlendKernels<double> blend_kernels<double>(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, blend_kernels_f64)();
}

}  // namespace tenon::provider::cpu
#endif
