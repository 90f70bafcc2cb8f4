// Vectors of f32 that are stored as f16, bf16 or floats of a byte, on AVX2 and AVX3. A file includes this once per
// dispatch target.
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

// The functions of NarrowFloat, for vectors.
template <int exponent_bits, int mantissa_bits, Specials specials>
HWY_INLINE NarrowVec load_narrow(const ByteBits<NarrowFloat<exponent_bits, mantissa_bits, specials>>* from) {
  using Format = NarrowFloat<exponent_bits, mantissa_bits, specials>;
  namespace hn = hwy::HWY_NAMESPACE;
  const NarrowTag d;
  const hn::RebindToUnsigned<NarrowTag> bits;
  const hn::RebindToSigned<NarrowTag> numbers;
  const hn::Rebind<uint8_t, NarrowTag> bytes;
  const auto all = hn::PromoteTo(bits, hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(from)));
  const auto sign = hn::ShiftLeft<31 - exponent_bits - mantissa_bits>(hn::And(all, hn::Set(bits, Format::sign_bit)));
  const auto magnitude = hn::And(all, hn::Set(bits, Format::magnitude_mask));
  const auto normal = hn::Add(hn::ShiftLeft<23 - mantissa_bits>(magnitude),
                              hn::Set(bits, static_cast<uint32_t>(127 - Format::bias) << 23));
  constexpr uint32_t scale = static_cast<uint32_t>(127 + 1 - Format::bias - mantissa_bits) << 23;
  const auto small = hn::Mul(hn::ConvertTo(d, hn::BitCast(numbers, magnitude)), hn::BitCast(d, hn::Set(bits, scale)));
  auto result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(bits, 1U << mantissa_bits)), hn::BitCast(bits, small), normal);
  if constexpr (Format::has_infinity)
    result = hn::IfThenElse(hn::Eq(magnitude, hn::Set(bits, Format::exponent_all)), hn::Set(bits, 0x7f800000U), result);
  const auto quiet = hn::Set(bits, 0x7fc00000U);
  if constexpr (Format::has_own_nan) {
    constexpr uint32_t greatest = Format::has_infinity ? Format::exponent_all : Format::greatest_finite;
    result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(bits, greatest)), quiet, result);
    return hn::BitCast(d, hn::Or(result, sign));
  }
  return hn::BitCast(d, hn::IfThenElse(hn::Eq(all, hn::Set(bits, Format::sign_bit)), quiet, hn::Or(result, sign)));
}
HWY_INLINE NarrowVec load_narrow(const F8E8M0Bits* from) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<NarrowTag> bits;
  const hn::Rebind<uint8_t, NarrowTag> bytes;
  const auto all = hn::PromoteTo(bits, hn::LoadU(bytes, reinterpret_cast<const uint8_t*>(from)));
  auto result = hn::Max(hn::ShiftLeft<23>(all), hn::Set(bits, 0x400000U));
  result = hn::IfThenElse(hn::Eq(all, hn::Set(bits, 0xff)), hn::Set(bits, 0x7fc00000U), result);
  return hn::BitCast(NarrowTag(), result);
}

template <class Bits>
HWY_INLINE void store_bytes(Bits x, void* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<NarrowTag> numbers;
  const hn::Rebind<uint8_t, NarrowTag> bytes;
  hn::StoreU(hn::DemoteTo(bytes, hn::BitCast(numbers, x)), bytes, static_cast<uint8_t*>(to));
}
template <int exponent_bits, int mantissa_bits, Specials specials>
HWY_INLINE void store_narrow(NarrowVec x, ByteBits<NarrowFloat<exponent_bits, mantissa_bits, specials>>* to) {
  using Format = NarrowFloat<exponent_bits, mantissa_bits, specials>;
  namespace hn = hwy::HWY_NAMESPACE;
  const NarrowTag d;
  const hn::RebindToUnsigned<NarrowTag> bits;
  const auto sign = hn::And(hn::ShiftRight<31 - exponent_bits - mantissa_bits>(hn::BitCast(bits, x)),
                            hn::Set(bits, Format::sign_bit));
  const auto magnitude = hn::BitCast(bits, hn::Abs(x));
  constexpr int drop = 23 - mantissa_bits;
  const auto odd = hn::And(hn::ShiftRight<drop>(magnitude), hn::Set(bits, 1));
  const auto rounded = hn::ShiftRight<drop>(hn::Add(hn::Add(magnitude, hn::Set(bits, (1U << (drop - 1)) - 1)), odd));
  const auto normal = hn::Sub(rounded, hn::Set(bits, static_cast<uint32_t>(127 - Format::bias) << mantissa_bits));
  // A denormal is rounded by the addition of a number whose last bit has the value of its last bit.
  constexpr uint32_t least_normal = static_cast<uint32_t>(127 + 1 - Format::bias) << 23;
  const auto unit = hn::Set(bits, least_normal + (static_cast<uint32_t>(drop) << 23));
  const auto small = hn::Sub(hn::BitCast(bits, hn::Add(hn::Abs(x), hn::BitCast(d, unit))), unit);
  auto result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(bits, least_normal)), small, normal);
  const auto overflows = hn::Gt(result, hn::Set(bits, Format::greatest_finite));
  const auto is_nan = hn::Gt(magnitude, hn::Set(bits, 0x7f800000U));
  if constexpr (specials == Specials::FNUZ) {
    result = hn::IfThenZeroElse(hn::Eq(result, hn::Zero(bits)), hn::Or(result, sign));
    return store_bytes(hn::IfThenElse(hn::Or(overflows, is_nan), hn::Set(bits, Format::sign_bit), result), to);
  }
  result = hn::IfThenElse(overflows, hn::Set(bits, Format::overflow_bits), result);
  result = hn::IfThenElse(is_nan, hn::Set(bits, Format::nan_bits), result);
  store_bytes(hn::Or(result, sign), to);
}
HWY_INLINE void store_narrow(NarrowVec x, F8E8M0Bits* to) {
  namespace hn = hwy::HWY_NAMESPACE;
  const NarrowTag d;
  const hn::RebindToUnsigned<NarrowTag> bits;
  const auto all = hn::BitCast(bits, x);
  auto result = hn::ShiftRight<23>(hn::Add(all, hn::Set(bits, 0x400000U)));
  // A denormal rounds to 2^-126 from 1.5 * 2^-127 on.
  const auto least = hn::IfThenElseZero(hn::Gt(all, hn::Set(bits, 0x5fffffU)), hn::Set(bits, 1));
  result = hn::IfThenElse(hn::Lt(all, hn::Set(bits, 0x800000U)), least, result);
  const auto positive = hn::RebindMask(bits, hn::Gt(x, hn::Zero(d)));
  const auto fits = hn::And(positive, hn::Lt(all, hn::Set(bits, 0x7f400000U)));
  store_bytes(hn::IfThenElse(fits, result, hn::Set(bits, 0xff)), to);
}

#endif
}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
