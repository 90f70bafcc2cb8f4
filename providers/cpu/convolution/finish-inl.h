// Loads and stores of whole and partial vectors of results, and the steps before a store. Included once per dispatch
// target.
#if defined(TENON_CPU_CONVOLUTION_FINISH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_CONVOLUTION_FINISH_INL_H
#undef TENON_CPU_CONVOLUTION_FINISH_INL_H
#else
#define TENON_CPU_CONVOLUTION_FINISH_INL_H
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "providers/cpu/convolution/kernel.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// kWhole: `count` is the number of lanes of a vector.
template <bool kWhole>
HWY_INLINE V load(const float* from, int64_t count) {
  const D d;
  if (kWhole || count >= static_cast<int64_t>(hn::Lanes(d))) return hn::LoadU(d, from);
  if constexpr (HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2) {
    return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, from);
  }
  // Other targets load a whole vector and clear the unused lanes.
  alignas(64) float some[hn::MaxLanes(D())] = {};
  std::copy_n(from, count, some);
  return hn::Load(d, some);
}

template <bool kWhole>
HWY_INLINE void store(V values, float* to, int64_t count) {
  const D d;
  if (kWhole || count >= static_cast<int64_t>(hn::Lanes(d))) return hn::StoreU(values, d, to);
  hn::BlendedStore(values, hn::FirstN(d, static_cast<size_t>(count)), d, to);
}

// Like ep_max and ep_min of the prelude, for bounds that are not NaN.
HWY_INLINE V bounded(V x, V low, V high) {
  x = hn::IfThenElse(hn::Le(x, low), low, x);
  return hn::IfThenElse(hn::Ge(x, high), high, x);
}

}  // namespace
}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
