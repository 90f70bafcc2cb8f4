// The exact functions of the SIMD prelude dialect, for Highway vectors of float and double, and calls of the scalar
// dialect lane by lane. prelude-inl.h has the other functions.
#if defined(TENON_CPU_SIMD_EXACT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_SIMD_EXACT_INL_H_
#undef TENON_CPU_SIMD_EXACT_INL_H_
#else
#define TENON_CPU_SIMD_EXACT_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"
#include "sdk/provider/prelude.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class V>
using DOf = hn::DFromV<V>;
template <class V>
using MOf = hn::Mask<DOf<V>>;

// True for vectors of double.
template <class V>
inline constexpr bool is_wide = sizeof(hn::TFromD<DOf<V>>) == 8;

template <class V>
HWY_INLINE V lit(double value) {
  return hn::Set(DOf<V>(), static_cast<hn::TFromD<DOf<V>>>(value));
}
// x * y + z
template <class V>
HWY_INLINE V madd(V x, V y, V z) {
  return hn::MulAdd(x, y, z);
}
template <class V>
HWY_INLINE V madd(V x, V y, double z) {
  return hn::MulAdd(x, y, lit<V>(z));
}

template <class V, class F>
HWY_INLINE V lanewise(V x, F function) {
  const DOf<V> d;
  HWY_ALIGN hn::TFromD<DOf<V>> lanes[hn::MaxLanes(DOf<V>())];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = function(lanes[i]);
  return hn::Load(d, lanes);
}
template <class V, class F>
HWY_INLINE V lanewise(V x, V y, F function) {
  const DOf<V> d;
  HWY_ALIGN hn::TFromD<DOf<V>> x_lanes[hn::MaxLanes(DOf<V>())];
  HWY_ALIGN hn::TFromD<DOf<V>> y_lanes[hn::MaxLanes(DOf<V>())];
  hn::Store(x, d, x_lanes);
  hn::Store(y, d, y_lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) x_lanes[i] = function(x_lanes[i], y_lanes[i]);
  return hn::Load(d, x_lanes);
}

// Exact operations.

template <class V>
HWY_INLINE V ep_add(V x, V y) {
  return hn::Add(x, y);
}
template <class V>
HWY_INLINE V ep_sub(V x, V y) {
  return hn::Sub(x, y);
}
template <class V>
HWY_INLINE V ep_mul(V x, V y) {
  return hn::Mul(x, y);
}
template <class V>
HWY_INLINE V ep_div(V x, V y) {
  return hn::Div(x, y);
}
template <class V>
HWY_INLINE V ep_sqrt(V x) {
  return hn::Sqrt(x);
}
template <class V>
HWY_INLINE V ep_neg(V x) {
  return hn::Neg(x);
}
template <class V>
HWY_INLINE V ep_abs(V x) {
  return hn::Abs(x);
}
template <class V>
HWY_INLINE V ep_fma(V x, V y, V z) {
  return hn::MulAdd(x, y, z);
}

template <class V>
HWY_INLINE MOf<V> ep_isnan(V x) {
  return hn::IsNaN(x);
}
template <class V>
HWY_INLINE MOf<V> ep_isinf(V x) {
  return hn::Eq(hn::Abs(x), lit<V>(std::numeric_limits<double>::infinity()));
}
template <class V>
HWY_INLINE MOf<V> ep_eq(V x, V y) {
  return hn::Eq(x, y);
}
template <class V>
HWY_INLINE MOf<V> ep_ne(V x, V y) {
  return hn::Not(hn::Eq(x, y));  // Highway's own Ne is ordered on some targets: false on NaN
}
template <class V>
HWY_INLINE MOf<V> ep_lt(V x, V y) {
  return hn::Lt(x, y);
}
template <class V>
HWY_INLINE MOf<V> ep_le(V x, V y) {
  return hn::Le(x, y);
}
template <class V>
HWY_INLINE MOf<V> ep_gt(V x, V y) {
  return hn::Gt(x, y);
}
template <class V>
HWY_INLINE MOf<V> ep_ge(V x, V y) {
  return hn::Ge(x, y);
}
template <class V>
HWY_INLINE MOf<V> ep_truth(V x) {
  return hn::Not(hn::Eq(x, lit<V>(0)));
}
template <class M>
HWY_INLINE M ep_land(M x, M y) {
  return hn::And(x, y);
}
template <class M>
HWY_INLINE M ep_lor(M x, M y) {
  return hn::Or(x, y);
}
template <class M>
HWY_INLINE M ep_lxor(M x, M y) {
  return hn::Xor(x, y);
}
template <class M>
HWY_INLINE M ep_lnot(M x) {
  return hn::Not(x);
}
template <class M, class V>
HWY_INLINE V ep_select(M condition, V x, V y) {
  return hn::IfThenElse(condition, x, y);
}

// The x86 instruction returns y if either is NaN.
template <class V>
HWY_INLINE V ep_max(V x, V y) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Max(x, y));
#else
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(hn::Gt(x, y), x, y));
#endif
}
template <class V>
HWY_INLINE V ep_min(V x, V y) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Min(x, y));
#else
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(hn::Lt(x, y), x, y));
#endif
}

// Floats from 2^23 on and doubles from 2^52 on are integers already. A result of 0 takes the sign of the argument.
template <class V, class F>
HWY_INLINE V round_by(V x, F function) {
  const V magnitude = hn::Abs(x);
  const V rounded = hn::CopySign(function(x), x);
  return hn::IfThenElse(hn::Lt(magnitude, lit<V>(is_wide<V> ? 4503599627370496.0 : 8388608.0)), rounded, x);
}
template <class V>
HWY_INLINE V ep_floor(V x) {
  return round_by(x, [](V v) HWY_ATTR { return hn::Floor(v); });
}
template <class V>
HWY_INLINE V ep_ceil(V x) {
  return round_by(x, [](V v) HWY_ATTR { return hn::Ceil(v); });
}
template <class V>
HWY_INLINE V ep_trunc(V x) {
  return round_by(x, [](V v) HWY_ATTR { return hn::Trunc(v); });
}
template <class V>
HWY_INLINE V ep_rint(V x) {
  return round_by(x, [](V v) HWY_ATTR { return hn::Round(v); });
}

#define TENON_LANEWISE(name)                                                                    \
  template <class V>                                                                            \
  HWY_INLINE V lanewise_##name(V x) {                                                           \
    return lanewise(x, [](auto lane) HWY_ATTR { return tenon::provider::scalar::name(lane); }); \
  }
#define TENON_LANEWISE_2(name)                                                                          \
  template <class V>                                                                                    \
  HWY_INLINE V lanewise_##name(V x, V y) {                                                              \
    return lanewise(x, y, [](auto p, auto q) HWY_ATTR { return tenon::provider::scalar::name(p, q); }); \
  }
#define EP_FLOAT_FUNCTION(name, function, library, shape, first, last, least, near_roots) TENON_LANEWISE(ep_##name)
#include "ep_api/accuracy.def"
#undef EP_FLOAT_FUNCTION
TENON_LANEWISE_2(ep_pow)
TENON_LANEWISE_2(ep_fmod)
#undef TENON_LANEWISE
#undef TENON_LANEWISE_2

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
