// The SIMD dialect of the prelude of ep_api/scalar_ops.def, for Highway vectors of float. A file includes it once per
// dispatch target, outside every namespace, and gets HWY_NAMESPACE::ep_add(V, V) and the other functions of the
// prelude.
//
// A truth value is a mask. scalar_ops.def states the error bounds; tests compare the inexact functions with double over
// dense samples on every target. A function without a vector form (pow, fmod and the rarer trigonometric ones) calls
// the scalar dialect lane by lane.
#if defined(TENON_CPU_SIMD_PRELUDE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_SIMD_PRELUDE_INL_H_
#undef TENON_CPU_SIMD_PRELUDE_INL_H_
#else
#define TENON_CPU_SIMD_PRELUDE_INL_H_
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

template <class V>
HWY_INLINE V lit(double value) {
  return hn::Set(DOf<V>(), static_cast<float>(value));
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
  HWY_ALIGN float lanes[hn::MaxLanes(DOf<V>())];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = function(lanes[i]);
  return hn::Load(d, lanes);
}
template <class V, class F>
HWY_INLINE V lanewise(V x, V y, F function) {
  const DOf<V> d;
  HWY_ALIGN float x_lanes[hn::MaxLanes(DOf<V>())];
  HWY_ALIGN float y_lanes[hn::MaxLanes(DOf<V>())];
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

template <class V>
HWY_INLINE V ep_max(V x, V y) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(hn::Gt(x, y), x, y));
}
template <class V>
HWY_INLINE V ep_min(V x, V y) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(hn::Lt(x, y), x, y));
}

// Every float from 2^23 on is an integer. Below 2^23 a result of 0 takes the sign of the argument.
template <class V, class F>
HWY_INLINE V round_by(V x, F function) {
  const V magnitude = hn::Abs(x);
  const V rounded = hn::CopySign(function(x), x);
  return hn::IfThenElse(hn::Lt(magnitude, lit<V>(8388608.0)), rounded, x);
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

// 2^n for a vector of whole numbers within [-126, 127].
template <class V>
HWY_INLINE V power_of_two(V n) {
  const DOf<V> d;
  const hn::RebindToSigned<DOf<V>> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::ConvertTo(di, n), hn::Set(di, 127))));
}
// y * 2^n for whole n within [-252, 254]. A denormal result is rounded once.
template <class V>
HWY_INLINE V scale(V y, V n) {
  const V half = hn::Floor(hn::Mul(n, lit<V>(0.5)));
  return hn::Mul(hn::Mul(y, power_of_two(half)), power_of_two(hn::Sub(n, half)));
}

// x - n ln 2, where n is the whole number nearest to x / ln 2.
template <class V>
struct Reduced {
  V n, r;
};
template <class V>
HWY_INLINE Reduced<V> reduce_by_ln2(V x) {
  const V n = hn::Round(hn::Mul(x, lit<V>(1.44269504088896341)));
  const V r = hn::NegMulAdd(n, lit<V>(-2.12194440e-4), hn::NegMulAdd(n, lit<V>(0.693359375), x));
  return {n, r};
}
// (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2 (Cephes, expf).
template <class V>
HWY_INLINE V exp_tail(V r) {
  V p = lit<V>(1.9875691500e-4);
  p = madd(p, r, 1.3981999507e-3);
  p = madd(p, r, 8.3334519073e-3);
  p = madd(p, r, 4.1665795894e-2);
  p = madd(p, r, 1.6666665459e-1);
  return madd(p, r, 5.0000001201e-1);
}

template <class V>
HWY_INLINE V ep_exp(V x) {
  const V clamped = hn::Min(hn::Max(x, lit<V>(-104.0)), lit<V>(89.0));
  const Reduced<V> e = reduce_by_ln2(clamped);
  const V y = hn::Add(madd(exp_tail(e.r), hn::Mul(e.r, e.r), e.r), lit<V>(1));
  return hn::IfThenElse(hn::IsNaN(x), x, scale(y, e.n));
}

// exp of an argument within [-86, 88]: the result needs no clamp and is not denormal.
template <class V>
HWY_INLINE V exp_of_bounded(V x) {
  const Reduced<V> e = reduce_by_ln2(x);
  return hn::Mul(hn::Add(madd(exp_tail(e.r), hn::Mul(e.r, e.r), e.r), lit<V>(1)), power_of_two(e.n));
}

// exp for x <= 0 in half the steps, for softmax: results below the least normal number may be 0. NaN gives NaN. Adding
// 1.5 * 2^23 gives n, the whole number nearest to x / ln 2, and adding 127 gives the exponent field of 2^n, which is 0
// at the bound of x. The polynomial is a minimax fit with an error of 3e-9 before rounding.
template <class V>
HWY_INLINE V exp_of_nonpositive(V x) {
  const DOf<V> d;
  const hn::RebindToSigned<DOf<V>> di;
  const V least = lit<V>(-88.0);
  const V bounded = hn::IfThenElse(hn::Lt(x, least), least, x);
  const V shifter = lit<V>(12583039.0);
  const V shifted = hn::MulAdd(bounded, lit<V>(1.44269504088896341), shifter);
  const V n = hn::Sub(shifted, shifter);
#if HWY_NATIVE_FMA
  const V r = hn::NegMulAdd(n, lit<V>(0.69314718055994531), bounded);  // the nearest float to ln 2 is 2e-9 off
#else
  const V r = hn::NegMulAdd(n, lit<V>(-2.12194440e-4), hn::NegMulAdd(n, lit<V>(0.693359375), bounded));
#endif
  V p = lit<V>(1.3814517296850681e-3);
  p = madd(p, r, 8.36875569075346e-3);
  p = madd(p, r, 4.166839271783829e-2);
  p = madd(p, r, 1.666651964187622e-1);
  p = madd(p, r, 4.999999403953552e-1);
  p = madd(p, r, 1.0);
  p = madd(p, r, 1.0);
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
}

template <class V>
HWY_INLINE V ep_expm1(V x) {
  const V clamped = hn::Min(hn::Max(x, lit<V>(-25.0)), lit<V>(89.0));
  const Reduced<V> e = reduce_by_ln2(clamped);
  const V p = madd(exp_tail(e.r), hn::Mul(e.r, e.r), e.r);
  // 2^n (p + 1) - 1. One factor 2 is applied last, so that 2^128 does not overflow too early.
  const V half = power_of_two(hn::Sub(e.n, lit<V>(1)));
  const V y = madd(half, p, hn::Sub(half, lit<V>(0.5)));
  const V result = hn::IfThenElse(hn::Eq(e.n, lit<V>(0)), p, hn::Add(y, y));
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Eq(x, lit<V>(0))), x, result);
}

// x = m 2^e with sqrt(1/2) <= m < sqrt(2). Returns e, and log(m) in two parts: m - 1 and the rest.
template <class V>
struct Logarithm {
  V e, f, rest;
};
template <class V>
HWY_INLINE Logarithm<V> split_log(V x) {
  const DOf<V> d;
  const hn::RebindToSigned<DOf<V>> di;
  const auto denormal = hn::Lt(x, lit<V>(1.17549435e-38));
  const V normal = hn::IfThenElse(denormal, hn::Mul(x, lit<V>(33554432.0)), x);
  const auto bits = hn::BitCast(di, normal);
  // Adding the distance from sqrt(1/2) to 1 carries into the exponent exactly where m must be halved.
  const auto shifted = hn::Add(bits, hn::Set(di, 0x3f800000 - 0x3f3504f3));
  const V exponent = hn::ConvertTo(d, hn::Sub(hn::ShiftRight<23>(shifted), hn::Set(di, 127)));
  const auto mantissa = hn::Add(hn::And(shifted, hn::Set(di, 0x007fffff)), hn::Set(di, 0x3f3504f3));
  const V f = hn::Sub(hn::BitCast(d, mantissa), lit<V>(1));
  const V e = hn::Sub(exponent, hn::IfThenElse(denormal, lit<V>(25), lit<V>(0)));
  const V z = hn::Mul(f, f);
  V p = lit<V>(7.0376836292e-2);
  p = madd(p, f, -1.1514610310e-1);
  p = madd(p, f, 1.1676998740e-1);
  p = madd(p, f, -1.2420140846e-1);
  p = madd(p, f, 1.4249322787e-1);
  p = madd(p, f, -1.6668057665e-1);
  p = madd(p, f, 2.0000714765e-1);
  p = madd(p, f, -2.4999993993e-1);
  p = madd(p, f, 3.3333331174e-1);
  return {e, f, hn::MulSub(hn::Mul(p, f), z, hn::Mul(z, lit<V>(0.5)))};
}
// log: NaN below 0 and for NaN, -inf at 0, +inf at +inf.
template <class V>
HWY_INLINE V log_edges(V x, V result) {
  const V infinity = lit<V>(std::numeric_limits<double>::infinity());
  V y = hn::IfThenElse(hn::Eq(x, infinity), infinity, result);
  y = hn::IfThenElse(hn::Eq(x, lit<V>(0)), hn::Neg(infinity), y);
  y = hn::IfThenElse(hn::Lt(x, lit<V>(0)), lit<V>(std::numeric_limits<double>::quiet_NaN()), y);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

template <class V>
HWY_INLINE V ep_log(V x) {
  const Logarithm<V> l = split_log(x);
  const V low = madd(l.e, lit<V>(-2.12194440e-4), l.rest);
  return log_edges(x, madd(l.e, lit<V>(0.693359375), hn::Add(low, l.f)));
}
template <class V>
HWY_INLINE V ep_log2(V x) {
  const Logarithm<V> l = split_log(x);
  // log2(e) = 1 + 0.4427. The product of the long part is added separately.
  const V log_m = hn::Add(l.f, l.rest);
  const V low = hn::Mul(log_m, lit<V>(0.44269504088896341));
  return log_edges(x, hn::Add(hn::Add(low, l.rest), hn::Add(l.f, l.e)));
}
template <class V>
HWY_INLINE V ep_log10(V x) {
  const Logarithm<V> l = split_log(x);
  const V log_m = hn::Mul(hn::Add(l.f, l.rest), lit<V>(0.43429448190325183));
  const V low = madd(l.e, lit<V>(4.6050390665e-6), log_m);
  return log_edges(x, madd(l.e, lit<V>(0.301025390625), low));
}
template <class V>
HWY_INLINE V ep_log1p(V x) {
  const V one = lit<V>(1);
  const V u = hn::Add(one, x);
  // log(u) x / (u - 1) corrects the rounding of 1 + x (Kahan; Higham, Accuracy and Stability, 1.14.1).
  const V corrected = hn::Mul(ep_log(u), hn::Div(x, hn::Sub(u, one)));
  const auto same = hn::Or(hn::Eq(u, one), hn::Eq(x, lit<V>(std::numeric_limits<double>::infinity())));
  return hn::IfThenElse(same, x, corrected);
}

template <class V>
HWY_INLINE V ep_tanh(V x) {
  const V magnitude = hn::Min(hn::Abs(x), lit<V>(10.0));
  const V z = hn::Mul(x, x);
  V p = lit<V>(-5.70498872745e-3);
  p = madd(p, z, 2.06390887954e-2);
  p = madd(p, z, -5.37397155531e-2);
  p = madd(p, z, 1.33314422036e-1);
  p = madd(p, z, -3.33332819422e-1);
  const V small = madd(hn::Mul(p, z), x, x);
  const V e = exp_of_bounded(hn::Add(magnitude, magnitude));
  const V large = hn::Sub(lit<V>(1), hn::Div(lit<V>(2), hn::Add(e, lit<V>(1))));
  const V result = hn::IfThenElse(hn::Lt(magnitude, lit<V>(0.625)), small, large);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(result, x));
}

// An odd polynomial below 0.92; 1 - exp of a polynomial above it (N. Juffa's erff).
template <class V>
HWY_INLINE V ep_erf(V x) {
  const V t = hn::Min(hn::Abs(x), lit<V>(4.0));
  const V s = hn::Mul(t, t);
  V u = madd(lit<V>(-3.88396438e-3), t, 2.42546219e-2);
  V p = madd(lit<V>(-1.72853470e-5), t, 3.83197126e-4);
  p = madd(p, s, u);
  p = madd(p, t, -1.06777877e-1);
  p = madd(p, t, -6.34846687e-1);
  p = madd(p, t, -1.28717512e-1);
  p = madd(p, t, hn::Neg(t));
  const V large = hn::Sub(lit<V>(1), exp_of_bounded(p));
  V q = lit<V>(-5.96761703e-4);
  q = madd(q, s, 4.99119423e-3);
  q = madd(q, s, -2.67681349e-2);
  q = madd(q, s, 1.12819925e-1);
  q = madd(q, s, -3.76125336e-1);
  q = madd(q, s, 1.28379166e-1);
  const V small = madd(q, t, t);
  const V result = hn::IfThenElse(hn::Gt(t, lit<V>(0.921875)), large, small);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(result, x));
}

// These functions have no vector form.

#define TENON_LANEWISE(name)                                                                     \
  template <class V>                                                                             \
  HWY_INLINE V name(V x) {                                                                       \
    return lanewise(x, [](float lane) HWY_ATTR { return tenon::provider::scalar::name(lane); }); \
  }
#define TENON_LANEWISE_2(name)                                                                            \
  template <class V>                                                                                      \
  HWY_INLINE V name(V x, V y) {                                                                           \
    return lanewise(x, y, [](float p, float q) HWY_ATTR { return tenon::provider::scalar::name(p, q); }); \
  }
TENON_LANEWISE(ep_sin)
TENON_LANEWISE(ep_cos)
TENON_LANEWISE(ep_tan)
TENON_LANEWISE(ep_asin)
TENON_LANEWISE(ep_acos)
TENON_LANEWISE(ep_atan)
TENON_LANEWISE(ep_sinh)
TENON_LANEWISE(ep_cosh)
TENON_LANEWISE(ep_asinh)
TENON_LANEWISE(ep_acosh)
TENON_LANEWISE(ep_atanh)
TENON_LANEWISE_2(ep_pow)
TENON_LANEWISE_2(ep_fmod)
TENON_LANEWISE_2(ep_mod)
TENON_LANEWISE_2(ep_floor_div)
#undef TENON_LANEWISE
#undef TENON_LANEWISE_2

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
