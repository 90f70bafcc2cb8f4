// A pooling window, compiled once per dispatch target. Several vectors of channels stay in registers while the loop
// processes the taps. The last vectors may overlap the previous ones.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/plain/f32_window.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <limits>

#include "hwy/highway.h"
#include "providers/cpu/plain/window.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

template <bool kSums, int kVectors>
HWY_INLINE void pool(const PoolWindow& window, int64_t c) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V held[kVectors];
  for (V& one : held) one = hn::Set(d, kSums ? 0.0f : -std::numeric_limits<float>::infinity());
  for (int64_t t = 0; t < window.taps; ++t) {
    const float* from = window.src + window.offsets[t] + c;
    for (int v = 0; v < kVectors; ++v) {
      const V x = hn::LoadU(d, from + v * lanes);
      held[v] = kSums ? hn::Add(held[v], x) : hn::IfThenElse(hn::Or(hn::Gt(x, held[v]), hn::IsNaN(x)), x, held[v]);
    }
  }
  for (int v = 0; v < kVectors; ++v) {
    if (kSums) held[v] = hn::Div(held[v], hn::Set(d, window.divisor));
    hn::StoreU(held[v], d, window.dst + c + v * lanes);
  }
}

template <bool kSums>
void pool_all(const PoolWindow& window) {
  constexpr int kMany = 4;
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t c = 0;
  for (; c + kMany * lanes <= window.channels; c += kMany * lanes) pool<kSums, kMany>(window, c);
  for (; c < window.channels; c += lanes) pool<kSums, 1>(window, std::min(c, window.channels - lanes));
}

// Starts with the first tap, and replaces the maximum by every greater element and by the first NaN.
void find_greatest(const PoolWindow& window) {
  const D d;
  const hn::RebindToSigned<D> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t c = 0; c + lanes <= window.channels; c += lanes) {
    V held = hn::Set(d, -std::numeric_limits<float>::infinity());
    auto where = hn::Set(di, -1);
    for (int64_t t = 0; t < window.taps; ++t) {
      const V x = hn::LoadU(d, window.src + window.offsets[t] + c);
      const auto here = hn::Set(di, static_cast<int32_t>(window.place + window.offsets[t] / window.channels));
      const auto greater = hn::AndNot(hn::IsNaN(held), hn::Or(hn::Gt(x, held), hn::IsNaN(x)));
      held = t == 0 ? x : hn::IfThenElse(greater, x, held);
      where = t == 0 ? here : hn::IfThenElse(hn::RebindMask(di, greater), here, where);
    }
    hn::StoreU(held, d, window.dst + c);
    hn::StoreU(where, di, window.positions + c);
  }
}

void run(const PoolWindow& window) {
  if (window.positions != nullptr) return find_greatest(window);
  window.sums ? pool_all<true>(window) : pool_all<false>(window);
}

WindowKernel kernel_of_target() { return {run, static_cast<int64_t>(hn::Lanes(D()))}; }

}  // namespace
}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

WindowKernel window_kernel(SimdLevel level) { return TENON_CPU_DISPATCH(level, kernel_of_target)(); }

}  // namespace tenon::provider::cpu
#endif
