// The kernel of the lanes method, compiled once per dispatch target: the sums of several taps stay in registers while
// the loop processes the pixels, so that it loads each pixel of `left` once for them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/weight_gradient/tap_sums.cpp"
#include "hwy/foreach_target.h"
//
#include <type_traits>
#include <utility>

#include "ep_api/ep_api.h"
#include "hwy/highway.h"
#include "providers/cpu/elementwise/narrow-inl.h"
#include "providers/cpu/weight_gradient/tap_sums.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kMostTaps = HWY_TARGET == HWY_AVX3 ? 12 : 9;  // whose sums fit in the registers

template <int kTaps, class T>
HWY_INLINE void sum_taps(const TapSums<T>& tile, int64_t first) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t* const offsets = tile.offsets + first;
  hn::Vec<decltype(d)> sums[kTaps];
  for (auto& sum : sums) sum = hn::Zero(d);
  for (int64_t line = 0; line < tile.lines; ++line) {
    const T* HWY_RESTRICT left = tile.left + line * tile.left_line;
    const T* right[kTaps];
    for (int t = 0; t < kTaps; ++t) right[t] = tile.right + line * tile.right_line + offsets[t];
    for (int64_t p = 0, at = 0; p < tile.count; ++p, left += tile.left_step, at += tile.right_step) {
      const auto value = hn::LoadU(d, left);
      for (int t = 0; t < kTaps; ++t) sums[t] = hn::MulAdd(value, hn::LoadU(d, right[t] + at), sums[t]);
    }
  }
  T* const to = tile.sums + first * lanes;
  for (int t = 0; t < kTaps; ++t) hn::StoreU(hn::Add(hn::LoadU(d, to + t * lanes), sums[t]), d, to + t * lanes);
}

template <class T, int... kTaps>
void sum_some(const TapSums<T>& tile, int64_t first, int64_t count, std::integer_sequence<int, kTaps...>) {
  constexpr void (*all[])(const TapSums<T>&, int64_t) = {sum_taps<kTaps + 1, T>...};
  all[count - 1](tile, first);
}

template <class T>
void run(const TapSums<T>& tile) {
  const int64_t passes = (tile.taps + kMostTaps - 1) / kMostTaps;
  for (int64_t pass = 0; pass < passes; ++pass) {
    const int64_t first = tile.taps * pass / passes, last = tile.taps * (pass + 1) / passes;
    sum_some(tile, first, last - first, std::make_integer_sequence<int, kMostTaps>());
  }
}

template <class T, class E>
void read(T* HWY_RESTRICT to, const void* from, int64_t step, int64_t count) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const E* HWY_RESTRICT pixel = static_cast<const E*>(from);
  for (int64_t p = 0; p < count; ++p, pixel += step, to += lanes) {
    if constexpr (std::is_same_v<T, E>) {
      hn::StoreU(hn::LoadU(d, pixel), d, to);
    } else {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
      hn::StoreU(load_narrow(pixel), d, to);
#else
      for (int64_t l = 0; l < lanes; ++l) to[l] = to_f32(pixel[l]);
#endif
    }
  }
}

template <class T>
TapKernel<T> kernel_of(int32_t dtype) {
  TapKernel<T> kernel{static_cast<int64_t>(hn::Lanes(hn::ScalableTag<T>())), run<T>, read<T, T>};
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == EP_DTYPE_f16) kernel.read = read<float, F16Bits>;
    if (dtype == EP_DTYPE_bf16) kernel.read = read<float, Bf16Bits>;
  }
  return kernel;
}

}  // namespace

TapKernel<float> tap_kernel_f32(int32_t dtype) { return kernel_of<float>(dtype); }
TapKernel<double> tap_kernel_f64(int32_t dtype) { return kernel_of<double>(dtype); }

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

template <>
TapKernel<float> tap_kernel<float>(SimdLevel level, int32_t dtype) {
  return TENON_CPU_DISPATCH(level, tap_kernel_f32)(dtype);
}
template <>
TapKernel<double> tap_kernel<double>(SimdLevel level, int32_t dtype) {
  return TENON_CPU_DISPATCH(level, tap_kernel_f64)(dtype);
}

}  // namespace tenon::provider::cpu
#endif
