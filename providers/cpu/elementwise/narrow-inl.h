// Vectors of f32 that are stored as f16 or bf16, on AVX2 and AVX3. A file includes this once per dispatch target.
#if defined(TENON_CPU_NARROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_NARROW_INL_H_
#undef TENON_CPU_NARROW_INL_H_
#else
#define TENON_CPU_NARROW_INL_H_
#endif

#include "hwy/highway.h"
#include "providers/cpu/elementwise/cast.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

using NarrowTag = hwy::HWY_NAMESPACE::ScalableTag<float>;
using NarrowVec = hwy::HWY_NAMESPACE::Vec<NarrowTag>;

// D: a tag of f32, whose lanes are loaded or stored.
template <class D = NarrowTag>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_narrow(const F16Bits* from) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::Rebind<hwy::float16_t, D> half;
  return hn::PromoteTo(D(), hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(from)));
}
template <class D = NarrowTag>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_narrow(const Bf16Bits* from) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<D> bits;
  const hn::Rebind<uint16_t, D> half;
  const auto wide = hn::PromoteTo(bits, hn::LoadU(half, reinterpret_cast<const uint16_t*>(from)));
  return hn::BitCast(D(), hn::ShiftLeft<16>(wide));
}

// The processor's conversion keeps bits of NaN; cast() yields one NaN per sign.
template <class D = NarrowTag>
HWY_INLINE void store_narrow(hwy::HWY_NAMESPACE::Vec<D> x, F16Bits* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  const D d;
  const hn::RebindToUnsigned<D> bits;
  const hn::Rebind<hwy::float16_t, D> half;
  const auto nan =
      hn::BitCast(d, hn::Or(hn::Set(bits, 0x7fc00000U), hn::And(hn::BitCast(bits, x), hn::Set(bits, 0x80000000U))));
  hn::StoreU(hn::DemoteTo(half, hn::IfThenElse(hn::IsNaN(x), nan, x)), half, reinterpret_cast<hwy::float16_t*>(to));
}
template <class D = NarrowTag>
HWY_INLINE void store_narrow(hwy::HWY_NAMESPACE::Vec<D> x, Bf16Bits* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  const D d;
  const hn::RebindToUnsigned<D> bits;
  const hn::RebindToSigned<D> numbers;
  const hn::Rebind<uint16_t, D> half;
  const auto all = hn::BitCast(bits, x);
  const auto odd = hn::And(hn::ShiftRight<16>(all), hn::Set(bits, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(all, hn::Set(bits, 0x7fff)), odd));
  const auto quiet = hn::Or(hn::ShiftRight<16>(all), hn::Set(bits, 0x40));
  const auto kept = hn::IfThenElse(hn::RebindMask(bits, hn::IsNaN(x)), quiet, rounded);
  hn::StoreU(hn::DemoteTo(half, hn::BitCast(numbers, kept)), half, reinterpret_cast<uint16_t*>(to));
}

#endif
}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
