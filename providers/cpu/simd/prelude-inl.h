// The SIMD dialect of the prelude of ep_api/scalar_ops.def, for Highway vectors of float. A file includes it once per
// dispatch target, outside every namespace. It defines HWY_NAMESPACE::ep_add(V, V) and the other functions of the
// prelude.
//
// A truth value is a mask. scalar_ops.def states the error bounds. Tests compare the inexact functions with double on
// dense samples for every target.
#if defined(TENON_CPU_SIMD_PRELUDE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_SIMD_PRELUDE_INL_H_
#undef TENON_CPU_SIMD_PRELUDE_INL_H_
#else
#define TENON_CPU_SIMD_PRELUDE_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"
#include "providers/cpu/simd/exact-inl.h"
#include "providers/cpu/simd/f64_prelude-inl.h"
#include "sdk/provider/prelude.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// 2^n for whole numbers n within [-126, 127].
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

#if HWY_TARGET == HWY_AVX3
// y * 2^n for whole n, rounded once.
HWY_INLINE hn::Vec512<float> times_power_of_two(hn::Vec512<float> y, hn::Vec512<float> n) {
  return hn::Vec512<float>{_mm512_scalef_ps(y.raw, n.raw)};
}
HWY_INLINE hn::Vec256<float> times_power_of_two(hn::Vec256<float> y, hn::Vec256<float> n) {
  return hn::Vec256<float>{_mm256_scalef_ps(y.raw, n.raw)};
}
template <size_t N>
HWY_INLINE hn::Vec128<float, N> times_power_of_two(hn::Vec128<float, N> y, hn::Vec128<float, N> n) {
  return hn::Vec128<float, N>{_mm_scalef_ps(y.raw, n.raw)};
}
#endif
template <class V>
HWY_INLINE V ep_exp(V x) {
#if HWY_TARGET == HWY_AVX3
  // One instruction multiplies by 2^n for any n. The bounds keep NaN, because the instructions for Min and Max return
  // their second argument if one is NaN.
  const V bounded = hn::Min(lit<V>(130.0), hn::Max(lit<V>(-150.0), x));
  const V shifter = lit<V>(12582912.0);
  const V n = hn::Sub(hn::MulAdd(bounded, lit<V>(1.44269504088896341), shifter), shifter);
  const V r = hn::NegMulAdd(n, lit<V>(-2.12194440e-4), hn::NegMulAdd(n, lit<V>(0.693359375), bounded));
  const V p = hn::Add(madd(exp_tail(r), hn::Mul(r, r), r), lit<V>(1));
  return times_power_of_two(p, n);
#else
  const V clamped = hn::Min(hn::Max(x, lit<V>(-104.0)), lit<V>(89.0));
  const Reduced<V> e = reduce_by_ln2(clamped);
  const V y = hn::Add(madd(exp_tail(e.r), hn::Mul(e.r, e.r), e.r), lit<V>(1));
  return hn::IfThenElse(hn::IsNaN(x), x, scale(y, e.n));
#endif
}

// 2^n e^(r ln 2) for the whole number n nearest to x and r = x - n, which is exact.
template <class V>
HWY_INLINE V ep_exp2(V x) {
#if HWY_TARGET == HWY_AVX3
  const V bounded = hn::Min(lit<V>(130.0), hn::Max(lit<V>(-152.0), x));  // keeps NaN, as in ep_exp
  const V n = hn::Round(bounded);
  const V r = hn::Mul(hn::Sub(bounded, n), lit<V>(0.69314718055994531));
  return times_power_of_two(hn::Add(madd(exp_tail(r), hn::Mul(r, r), r), lit<V>(1)), n);
#else
  const V bounded = hn::Min(hn::Max(x, lit<V>(-152.0)), lit<V>(130.0));
  const V n = hn::Round(bounded);
  const V r = hn::Mul(hn::Sub(bounded, n), lit<V>(0.69314718055994531));
  const V y = hn::Add(madd(exp_tail(r), hn::Mul(r, r), r), lit<V>(1));
  return hn::IfThenElse(hn::IsNaN(x), x, scale(y, n));
#endif
}

// exp for x in [-86, 88]: the result needs no clamp and is not denormal.
template <class V>
HWY_INLINE V exp_of_bounded(V x) {
  const Reduced<V> e = reduce_by_ln2(x);
  return hn::Mul(hn::Add(madd(exp_tail(e.r), hn::Mul(e.r, e.r), e.r), lit<V>(1)), power_of_two(e.n));
}

// A faster exp for x <= 0, for softmax: results below the least normal number may become 0. NaN gives NaN. Adding 1.5 *
// 2^23 gives n, the whole number nearest to x / ln 2, and adding 127 gives the exponent field of 2^n, which is 0 at the
// lower bound of x. The polynomial is a minimax fit with an error of 3e-9 before rounding.
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
  const V r = hn::NegMulAdd(n, lit<V>(0.69314718055994531), bounded);  // the float nearest to ln 2 has an error of 2e-9
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
  // 2^n (p + 1) - 1. A factor of 2 is applied last, so that 2^128 does not overflow too early.
  const V half = power_of_two(hn::Sub(e.n, lit<V>(1)));
  const V y = madd(half, p, hn::Sub(half, lit<V>(0.5)));
  const V result = hn::IfThenElse(hn::Eq(e.n, lit<V>(0)), p, hn::Add(y, y));
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Eq(x, lit<V>(0))), x, result);
}

// x = m 2^e with sqrt(1/2) <= m < sqrt(2). Returns e, and log(m) as the sum of m - 1 and a rest.
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
  // Adding the distance between sqrt(1/2) and 1 carries into the exponent exactly if m must be halved.
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
  // log2(e) = 1 + 0.4427. The product with the fraction is added separately.
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

#if HWY_TARGET == HWY_AVX3
// An odd function in `kPieces` (16 or 32) pieces; one instruction looks up a coefficient. Beyond `last` the function
// is 1.
template <int kPieces>
HWY_INLINE hn::Vec512<float> odd_pieces(hn::Vec512<float> x, const float (&rows)[6][kPieces], double width,
                                        double last) {
  using V = hn::Vec512<float>;
  const hn::Full512<float> d;
  const V t = hn::Min(lit<V>(last), hn::Abs(x));  // the instruction for Min returns its second argument if one is NaN
  const V shifter = lit<V>(12582912.0);
  const V shifted = hn::MulAdd(t, lit<V>(1 / width), shifter);
  const V u = hn::NegMulAdd(hn::Sub(shifted, shifter), lit<V>(width), t);
  const __m512i piece = _mm512_castps_si512(shifted.raw);  // the look-up uses its low bits
  const auto coefficient = [&](int power) {
    const V low = hn::Load(d, rows[power]);
    if constexpr (kPieces == 16) return V{_mm512_permutexvar_ps(piece, low.raw)};
    return V{_mm512_permutex2var_ps(low.raw, piece, hn::Load(d, rows[power] + 16).raw)};
  };
  V p = coefficient(5);
  for (int power = 4; power >= 0; --power) p = hn::MulAdd(p, u, coefficient(power));
  return hn::CopySign(p, x);
}
alignas(64) inline constexpr float tanh_pieces[6][32] = {
#include "sdk/provider/tanh_pieces.def"
};
alignas(64) inline constexpr float erf_pieces[6][16] = {
#include "sdk/provider/erf_pieces.def"
};
HWY_INLINE hn::Vec512<float> ep_tanh(hn::Vec512<float> x) { return odd_pieces(x, tanh_pieces, 75.0 / 256, 9.2); }
HWY_INLINE hn::Vec512<float> ep_erf(hn::Vec512<float> x) { return odd_pieces(x, erf_pieces, 66.0 / 256, 3.99); }
#define TENON_IN_512(name)                                               \
  HWY_INLINE hn::Vec256<float> name(hn::Vec256<float> x) {               \
    const hn::Vec512<float> wide{_mm512_zextps256_ps512(x.raw)};         \
    return hn::Vec256<float>{_mm512_castps512_ps256(name(wide).raw)};    \
  }                                                                      \
  template <size_t N>                                                    \
  HWY_INLINE hn::Vec128<float, N> name(hn::Vec128<float, N> x) {         \
    const hn::Vec512<float> wide{_mm512_zextps128_ps512(x.raw)};         \
    return hn::Vec128<float, N>{_mm512_castps512_ps128(name(wide).raw)}; \
  }
TENON_IN_512(ep_tanh)
TENON_IN_512(ep_erf)
#undef TENON_IN_512
#else
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
  const V large = hn::Sub(lit<V>(1), exp_of_nonpositive(p));
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
#endif

// exp(-a^2) (1 + p(q)) / (1 + 2 a), a = |x|, q = (a - 2) / (a + 2) (N. Juffa's erfcf). A fused multiply-add computes
// the rounding errors of the square, of q and of the division, which are then compensated.
template <class V>
HWY_INLINE V ep_erfc(V x) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  const V one = lit<V>(1);
  const V a = hn::Min(hn::Abs(x), lit<V>(10.5));
  V r = hn::Div(one, hn::Add(a, lit<V>(2)));
  V q = hn::Mul(hn::Sub(a, lit<V>(2)), r);
  const V rest = hn::NegMulAdd(q, a, hn::NegMulAdd(hn::Add(q, one), lit<V>(2), a));
  q = madd(r, rest, q);
  V p = lit<V>(-4.01139259e-4);
  p = madd(p, q, -1.23075210e-3);
  p = madd(p, q, 1.31355342e-3);
  p = madd(p, q, 8.63227434e-3);
  p = madd(p, q, -8.05991981e-3);
  p = madd(p, q, -5.42046614e-2);
  p = madd(p, q, 1.64055392e-1);
  p = madd(p, q, -1.66031361e-1);
  p = madd(p, q, -9.27639827e-2);
  p = madd(p, q, 2.76978403e-1);
  r = hn::Div(one, hn::Add(hn::Add(a, a), one));
  q = madd(p, r, r);
  const V lost = madd(hn::NegMulAdd(q, a, lit<V>(0.5)), lit<V>(2), hn::Sub(p, q));
  r = madd(lost, r, q);
  const V square = hn::Mul(a, a);
  const V bell = ep_exp(hn::Neg(square));
  const V part = hn::Mul(r, bell);
  const V result = madd(part, hn::NegMulAdd(a, a, square), part);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(hn::Lt(x, lit<V>(0)), hn::Sub(lit<V>(2), result), result));
#else
  return lanewise_ep_erfc(x);
#endif
}

// asin for |x| <= 1/2 (Cephes, asinf).
template <class V>
HWY_INLINE V asin_of_small(V x) {
  const V z = hn::Mul(x, x);
  V p = lit<V>(4.2163199048e-2);
  p = madd(p, z, 2.4181311049e-2);
  p = madd(p, z, 4.5470025998e-2);
  p = madd(p, z, 7.4953002686e-2);
  p = madd(p, z, 1.6666752422e-1);
  return madd(hn::Mul(p, z), x, x);
}
// asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)). Outside [-1, 1] the square root gives NaN.
template <class V>
HWY_INLINE V ep_asin(V x) {
  const V magnitude = hn::Abs(x);
  const auto small = hn::Le(magnitude, lit<V>(0.5));
  const V root = hn::Sqrt(hn::Mul(hn::Sub(lit<V>(1), magnitude), lit<V>(0.5)));
  const V part = asin_of_small(hn::IfThenElse(small, magnitude, root));
  const V result = hn::IfThenElse(small, part, hn::Sub(lit<V>(1.57079632679489662), hn::Add(part, part)));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(result, x));
}
template <class V>
HWY_INLINE V ep_acos(V x) {
  const V magnitude = hn::Abs(x);
  const auto small = hn::Le(magnitude, lit<V>(0.5));
  const V root = hn::Sqrt(hn::Mul(hn::Sub(lit<V>(1), magnitude), lit<V>(0.5)));
  const V part = asin_of_small(hn::IfThenElse(small, x, root));
  const V twice = hn::Add(part, part);
  const V large = hn::IfThenElse(hn::Lt(x, lit<V>(0)), hn::Sub(lit<V>(3.14159265358979324), twice), twice);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(small, hn::Sub(lit<V>(1.57079632679489662), part), large));
}

// Subtracting pi/4 or pi/2 reduces the argument to [-tan(pi/8), tan(pi/8)] (Cephes, atanf).
template <class V>
HWY_INLINE V ep_atan(V x) {
  const V magnitude = hn::Abs(x);
  const auto far = hn::Gt(magnitude, lit<V>(2.414213562373095));
  const auto middle = hn::Gt(magnitude, lit<V>(0.4142135623730950));
  const V one = lit<V>(1);
  const V over = hn::IfThenElse(far, hn::Neg(one), hn::IfThenElse(middle, hn::Sub(magnitude, one), magnitude));
  const V under = hn::IfThenElse(far, magnitude, hn::IfThenElse(middle, hn::Add(magnitude, one), one));
  const V moved =
      hn::IfThenElse(far, lit<V>(1.57079632679489662), hn::IfThenElse(middle, lit<V>(0.785398163397448310), lit<V>(0)));
  const V y = hn::Div(over, under);
  const V z = hn::Mul(y, y);
  V p = lit<V>(8.05374449538e-2);
  p = madd(p, z, -1.38776856032e-1);
  p = madd(p, z, 1.99777106478e-1);
  p = madd(p, z, -3.33329491539e-1);
  const V result = hn::Add(moved, madd(hn::Mul(p, z), y, y));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(result, x));
}

// The functions below compute in double, half a vector at a time, so that rounding to float hides their errors. A
// vector with an argument outside a formula's range is computed lane by lane by the scalar dialect. So is every vector
// on targets without vectors of double.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define TENON_IN_DOUBLE 1
#else
#define TENON_IN_DOUBLE 0
#endif

#if TENON_IN_DOUBLE
template <class V, class F>
HWY_INLINE V in_double(V x, F function) {
  const DOf<V> d;
  const hn::Half<DOf<V>> half;
  const hn::Repartition<double, DOf<V>> wide;
  const auto low = function(hn::PromoteTo(wide, hn::LowerHalf(half, x)));
  const auto high = function(hn::PromoteTo(wide, hn::UpperHalf(half, x)));
  return hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
}
template <class V, class F>
HWY_INLINE V in_double(V x, V y, F function) {
  const DOf<V> d;
  const hn::Half<DOf<V>> half;
  const hn::Repartition<double, DOf<V>> wide;
  const auto low = function(hn::PromoteTo(wide, hn::LowerHalf(half, x)), hn::PromoteTo(wide, hn::LowerHalf(half, y)));
  const auto high = function(hn::PromoteTo(wide, hn::UpperHalf(half, x)), hn::PromoteTo(wide, hn::UpperHalf(half, y)));
  return hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
}

// sin(r) and cos(r) of r = x - n pi/2, |r| <= pi/4; n is in the low bits of `quadrant`. Taylor series with errors below
// 2^-33.
template <class W>
struct Angle {
  W sin, cos;
  hn::Vec<hn::RebindToSigned<DOf<W>>> quadrant;
};
template <class W>
HWY_INLINE Angle<W> angle_of(W x) {
  const hn::RebindToSigned<DOf<W>> bits;
  const W shifter = lit<W>(6755399441055744.0);  // 1.5 * 2^52
  const W shifted = hn::MulAdd(x, lit<W>(0.636619772367581343), shifter);
  const W n = hn::Sub(shifted, shifter);
  const W r = hn::NegMulAdd(n, lit<W>(6.12323399573676604e-17), hn::NegMulAdd(n, lit<W>(1.57079632679489656), x));
  const W z = hn::Mul(r, r);
  W s = lit<W>(-2.50521083854417188e-8);
  s = madd(s, z, 2.75573192239858907e-6);
  s = madd(s, z, -1.98412698412698413e-4);
  s = madd(s, z, 8.33333333333333333e-3);
  s = madd(s, z, -1.66666666666666667e-1);
  s = madd(s, z, 1.0);
  W c = lit<W>(2.08767569878680990e-9);
  c = madd(c, z, -2.75573192239858907e-7);
  c = madd(c, z, 2.48015873015873016e-5);
  c = madd(c, z, -1.38888888888888889e-3);
  c = madd(c, z, 4.16666666666666667e-2);
  c = madd(c, z, -0.5);
  c = madd(c, z, 1.0);
  return {hn::Mul(s, r), c, hn::BitCast(bits, shifted)};
}
template <class W>
HWY_INLINE hn::Mask<DOf<W>> bit_of(const Angle<W>& angle, int64_t bit) {
  const hn::RebindToSigned<DOf<W>> bits;
  return hn::RebindMask(DOf<W>(), hn::TestBit(angle.quadrant, hn::Set(bits, bit)));
}
template <class V>
HWY_INLINE bool is_near(V x) {
  return hn::AllTrue(DOf<V>(), hn::Lt(hn::Abs(x), lit<V>(1048576.0)));
}

// 2 atanh(s) / s - 2 as a function of s^2, for |s| <= 0.1716: the series of a logarithm. The error is below 2^-36.
template <class W>
HWY_INLINE W log_series(W z) {
  W p = lit<W>(0.153846153846153846);
  p = madd(p, z, 0.181818181818181818);
  p = madd(p, z, 0.222222222222222222);
  p = madd(p, z, 0.285714285714285714);
  p = madd(p, z, 0.4);
  p = madd(p, z, 0.666666666666666667);
  return p;
}
// Returns e and log(m) for x = m 2^e, sqrt(1/2) <= m < sqrt(2); x is positive, finite and normal.
template <class W>
struct WideLogarithm {
  W e, log_m;
};
template <class W>
HWY_INLINE WideLogarithm<W> wide_log(W x) {
  const DOf<W> d;
  const hn::RebindToSigned<DOf<W>> di;
  constexpr int64_t root_half = 0x3fe6a09e667f3bcd;
  const auto shifted = hn::Add(hn::BitCast(di, x), hn::Set(di, 0x3ff0000000000000 - root_half));
  // Converts the exponent: it is the low bits of a double near 2^52 + 2^51.
  const auto exponent =
      hn::Add(hn::BitCast(di, hn::ShiftRight<52>(hn::BitCast(hn::RebindToUnsigned<DOf<W>>(), shifted))),
              hn::Set(di, 0x4338000000000000));
  const W e = hn::Sub(hn::BitCast(d, exponent), lit<W>(6755399441055744.0 + 1023.0));
  const auto mantissa = hn::Add(hn::And(shifted, hn::Set(di, 0x000fffffffffffff)), hn::Set(di, root_half));
  const W m = hn::BitCast(d, mantissa);
  const W s = hn::Div(hn::Sub(m, lit<W>(1)), hn::Add(m, lit<W>(1)));
  const W z = hn::Mul(s, s);
  return {e, hn::Mul(s, madd(log_series(z), z, 2.0))};
}
// e^x for |x| <= 700.
template <class W>
HWY_INLINE W wide_exp(W x) {
  const DOf<W> d;
  const hn::RebindToSigned<DOf<W>> di;
  const W shifter = lit<W>(6755399441055744.0);
  const W shifted = hn::MulAdd(x, lit<W>(1.44269504088896341), shifter);
  const W n = hn::Sub(shifted, shifter);
  const W r = hn::NegMulAdd(n, lit<W>(0.693147180559945309), x);
  W p = lit<W>(2.48015873015873016e-5);
  p = madd(p, r, 1.98412698412698413e-4);
  p = madd(p, r, 1.38888888888888889e-3);
  p = madd(p, r, 8.33333333333333333e-3);
  p = madd(p, r, 4.16666666666666667e-2);
  p = madd(p, r, 1.66666666666666667e-1);
  p = madd(p, r, 0.5);
  p = madd(p, r, 1.0);
  p = madd(p, r, 1.0);
  const auto power = hn::ShiftLeft<52>(hn::Add(hn::BitCast(di, shifted), hn::Set(di, 1023)));
  return hn::Mul(p, hn::BitCast(d, power));
}
template <class W>
HWY_INLINE W log_of(W x) {
  const WideLogarithm<W> l = wide_log(x);
  return hn::MulAdd(l.e, lit<W>(0.693147180559945309), l.log_m);
}
template <class V>
HWY_INLINE bool all_below(V x, double limit) {
  return hn::AllTrue(DOf<V>(), hn::Lt(x, lit<V>(limit)));
}
#endif

template <class V>
HWY_INLINE V ep_sin(V x) {
#if TENON_IN_DOUBLE
  if (HWY_LIKELY(is_near(x))) {
    return in_double(x, [](auto w) HWY_ATTR {
      const auto a = angle_of(w);
      const auto value = hn::IfThenElse(bit_of(a, 1), a.cos, a.sin);
      return hn::IfThenElse(bit_of(a, 2), hn::Neg(value), value);
    });
  }
#endif
  return lanewise_ep_sin(x);
}
template <class V>
HWY_INLINE V ep_cos(V x) {
#if TENON_IN_DOUBLE
  if (HWY_LIKELY(is_near(x))) {
    return in_double(x, [](auto w) HWY_ATTR {
      auto a = angle_of(w);
      const auto value = hn::IfThenElse(bit_of(a, 1), a.sin, a.cos);
      a.quadrant = hn::Add(a.quadrant, hn::Set(hn::RebindToSigned<DOf<decltype(w)>>(), 1));
      return hn::IfThenElse(bit_of(a, 2), hn::Neg(value), value);
    });
  }
#endif
  return lanewise_ep_cos(x);
}
template <class V>
HWY_INLINE V ep_tan(V x) {
#if TENON_IN_DOUBLE
  if (HWY_LIKELY(is_near(x))) {
    return in_double(x, [](auto w) HWY_ATTR {
      const auto a = angle_of(w);
      const auto odd = bit_of(a, 1);
      return hn::Div(hn::IfThenElse(odd, hn::Neg(a.cos), a.sin), hn::IfThenElse(odd, a.sin, a.cos));
    });
  }
#endif
  return lanewise_ep_tan(x);
}

// Above 89 the results are infinite. Near 0 sinh uses a series.
template <class V>
HWY_INLINE V ep_sinh(V x) {
#if TENON_IN_DOUBLE
  const V clamped = hn::Min(hn::Max(x, lit<V>(-200.0)), lit<V>(200.0));
  const V result = in_double(clamped, [](auto w) HWY_ATTR {
    using W = decltype(w);
    const W z = hn::Mul(w, w);
    W p = lit<W>(2.75573192239858907e-6);
    p = madd(p, z, 1.98412698412698413e-4);
    p = madd(p, z, 8.33333333333333333e-3);
    p = madd(p, z, 1.66666666666666667e-1);
    p = madd(p, z, 1.0);
    const W e = wide_exp(w);
    const W large = hn::Mul(hn::Sub(e, hn::Div(lit<W>(1), e)), lit<W>(0.5));
    return hn::IfThenElse(hn::Lt(hn::Abs(w), lit<W>(0.5)), hn::Mul(p, w), large);
  });
  return hn::IfThenElse(hn::IsNaN(x), x, result);
#else
  return lanewise_ep_sinh(x);
#endif
}
template <class V>
HWY_INLINE V ep_cosh(V x) {
#if TENON_IN_DOUBLE
  const V result = in_double(hn::Min(hn::Abs(x), lit<V>(200.0)), [](auto w) HWY_ATTR {
    using W = decltype(w);
    const W e = wide_exp(w);
    return hn::Mul(hn::Add(e, hn::Div(lit<W>(1), e)), lit<W>(0.5));
  });
  return hn::IfThenElse(hn::IsNaN(x), x, result);
#else
  return lanewise_ep_cosh(x);
#endif
}
template <class V>
HWY_INLINE V ep_asinh(V x) {
#if TENON_IN_DOUBLE
  const V magnitude = hn::Abs(x);
  if (HWY_LIKELY(all_below(magnitude, 3.5e38))) {
    const V result = in_double(magnitude, [](auto w) HWY_ATTR {
      using W = decltype(w);
      const W z = hn::Mul(w, w);
      const W large = log_of(hn::Add(w, hn::Sqrt(madd(w, w, 1.0))));
      const W small = hn::NegMulAdd(hn::Mul(z, lit<W>(0.166666666666666667)), w, w);
      return hn::IfThenElse(hn::Lt(w, lit<W>(0.0009765625)), small, large);
    });
    return hn::CopySign(result, x);
  }
#endif
  return lanewise_ep_asinh(x);
}
template <class V>
HWY_INLINE V ep_acosh(V x) {
#if TENON_IN_DOUBLE
  const DOf<V> d;
  if (HWY_LIKELY(hn::AllFalse(d, hn::Gt(x, lit<V>(3.4e38))))) {
    const V result = in_double(
        x, [](auto w) HWY_ATTR { return log_of(hn::Add(w, hn::Sqrt(hn::MulSub(w, w, lit<decltype(w)>(1))))); });
    return hn::IfThenElse(hn::Ge(x, lit<V>(1)), result, hn::IfThenElse(hn::IsNaN(x), x, hn::NaN(d)));
  }
#endif
  return lanewise_ep_acosh(x);
}
template <class V>
HWY_INLINE V ep_atanh(V x) {
#if TENON_IN_DOUBLE
  const DOf<V> d;
  const V magnitude = hn::Abs(x);
  const V inside = in_double(x, [](auto w) HWY_ATTR {
    using W = decltype(w);
    const W z = hn::Mul(w, w);
    const W large = hn::Mul(log_of(hn::Div(hn::Add(lit<W>(1), w), hn::Sub(lit<W>(1), w))), lit<W>(0.5));
    const W small = hn::MulAdd(hn::Mul(z, lit<W>(0.333333333333333333)), w, w);
    return hn::IfThenElse(hn::Lt(hn::Abs(w), lit<W>(0.0009765625)), small, large);
  });
  const V beyond = hn::IfThenElse(hn::Eq(magnitude, lit<V>(1)), hn::CopySign(hn::Inf(d), x),
                                  hn::IfThenElse(hn::IsNaN(x), x, hn::NaN(d)));
  return hn::IfThenElse(hn::Lt(magnitude, lit<V>(1)), inside, beyond);
#else
  return lanewise_ep_atanh(x);
#endif
}

// |x|^y = 2^(y log2 |x|). For negative x and integer y, the sign is (-1)^y; other powers of a negative x do not exist.
template <class V>
HWY_INLINE V ep_pow(V x, V y) {
#if TENON_IN_DOUBLE
  const DOf<V> d;
  const V base = hn::Abs(x);
  const auto ordinary =
      hn::And(hn::And(hn::Gt(base, lit<V>(0)), hn::Lt(base, lit<V>(3.5e38))), hn::Lt(hn::Abs(y), lit<V>(1e9)));
  if (HWY_LIKELY(hn::AllTrue(d, ordinary))) {
    const V power = in_double(base, y, [](auto w, auto exponent) HWY_ATTR {
      using W = decltype(w);
      const WideLogarithm<W> l = wide_log(w);
      const W log = hn::MulAdd(l.e, lit<W>(0.693147180559945309), l.log_m);
      return wide_exp(hn::Min(hn::Max(hn::Mul(exponent, log), lit<W>(-200.0)), lit<W>(200.0)));
    });
    const auto negative = hn::Lt(x, lit<V>(0));
    if (hn::AllFalse(d, negative)) return power;
    const V half = hn::Mul(y, lit<V>(0.5));
    const auto whole = hn::Eq(ep_trunc(y), y);
    const auto even = hn::Eq(ep_trunc(half), half);
    const V nan = lit<V>(std::numeric_limits<double>::quiet_NaN());
    const V with_sign = hn::IfThenElse(even, power, hn::Neg(power));
    return hn::IfThenElse(negative, hn::IfThenElse(whole, with_sign, nan), power);
  }
#endif
  return lanewise_ep_pow(x, y);
}

// x - trunc(x / y) y in double, which holds the product exactly. The quotient is off by at most one.
template <class V>
HWY_INLINE V ep_fmod(V x, V y) {
#if TENON_IN_DOUBLE
  const DOf<V> d;
  const V span = hn::Mul(hn::Abs(y), lit<V>(134217728.0));  // 2^27
  // Lanes whose span is infinite or whose y is denormal use the C library.
  const auto ordinary = hn::And(hn::Lt(hn::Abs(x), span), hn::Lt(span, lit<V>(3e38)));
  if (HWY_LIKELY(hn::AllTrue(d, ordinary))) {
    const V rest = in_double(hn::Abs(x), hn::Abs(y), [](auto w, auto divisor) HWY_ATTR {
      using W = decltype(w);
      const W left = hn::NegMulAdd(hn::Trunc(hn::Div(w, divisor)), divisor, w);
      return hn::IfThenElse(hn::Lt(left, lit<W>(0)), hn::Add(left, divisor), left);
    });
    return hn::CopySign(rest, x);
  }
#endif
  return lanewise_ep_fmod(x, y);
}
// Like the scalar dialect.
template <class V>
HWY_INLINE V ep_mod(V x, V y) {
  const V rest = ep_fmod(x, y);
  const auto differs = hn::Xor(hn::Lt(rest, lit<V>(0)), hn::Lt(y, lit<V>(0)));
  const V moved = hn::IfThenElse(differs, hn::Add(rest, y), rest);
  return hn::IfThenElse(hn::Eq(rest, lit<V>(0)), hn::CopySign(lit<V>(0), y), moved);
}
template <class V>
HWY_INLINE V ep_floor_div(V x, V y) {
  const V zero = lit<V>(0);
  const V rest = ep_fmod(x, y);
  const V ratio = hn::Div(x, y);
  V quotient = hn::Div(hn::Sub(x, rest), y);
  const auto differs = hn::And(ep_ne(rest, zero), hn::Xor(hn::Lt(rest, zero), hn::Lt(y, zero)));
  quotient = hn::IfThenElse(differs, hn::Sub(quotient, lit<V>(1)), quotient);
  V floored = ep_floor(quotient);
  floored = hn::IfThenElse(hn::Gt(hn::Sub(quotient, floored), lit<V>(0.5)), hn::Add(floored, lit<V>(1)), floored);
  const V result = hn::IfThenElse(hn::Eq(quotient, zero), hn::CopySign(zero, ratio), floored);
  return hn::IfThenElse(hn::Eq(y, zero), ratio, result);
}
#if TENON_IN_DOUBLE
// log gamma(y) = sum - log(product), for y > 0. As in sdk/provider/prelude_functions.def, gamma(y) below 10 is gamma(y
// + 10) / (y (y + 1) ... (y + 9)); here the series has three terms, with an error of 1e-9. If all lanes are below 10,
// log gamma(y + 10) is a Chebyshev fit within 3e-10. Near the roots 1 and 2, the sum is a polynomial times (y - 1) (y -
// 2), a Chebyshev fit with a relative error of 2e-9, and the product is 1.
template <class W>
struct GammaParts {
  W sum, product;
};
template <class W>
HWY_INLINE GammaParts<W> gamma_parts_of(W y) {
  const DOf<W> d;
  const W one = lit<W>(1);
  const W low = hn::Min(y, lit<W>(10));
  W rising = hn::Add(low, lit<W>(45));  // y (y + 1) ... (y + 9)
  rising = madd(rising, low, 870.0);
  rising = madd(rising, low, 9450.0);
  rising = madd(rising, low, 63273.0);
  rising = madd(rising, low, 269325.0);
  rising = madd(rising, low, 723680.0);
  rising = madd(rising, low, 1172700.0);
  rising = madd(rising, low, 1026576.0);
  rising = madd(rising, low, 362880.0);
  rising = hn::Mul(rising, low);
  const auto near = hn::Lt(y, lit<W>(10));
  W above;
  if (HWY_LIKELY(hn::AllTrue(d, near))) {
    const W t = hn::Sub(y, lit<W>(5));
    above = lit<W>(-2.871034759836711e-14);
    above = madd(above, t, 4.956256378898623e-13);
    above = madd(above, t, -6.7736716112324886e-12);
    above = madd(above, t, 1.2777486950055907e-10);
    above = madd(above, t, -2.544289344224469e-09);
    above = madd(above, t, 5.1741118890828155e-08);
    above = madd(above, t, -1.1266080787953057e-06);
    above = madd(above, t, 2.7269730500394823e-05);
    above = madd(above, t, -0.0007917672043637341);
    above = madd(above, t, 0.034469114487788145);
    above = madd(above, t, 2.6743466617372937);
    above = madd(above, t, 25.191221182541295);
  } else {
    const W z = hn::IfThenElse(near, hn::Add(y, lit<W>(10)), y);
    const W r = hn::Div(one, z);
    const W square = hn::Mul(r, r);
    W series = lit<W>(7.93650793650793651e-4);
    series = madd(series, square, -2.77777777777777778e-3);
    series = madd(series, square, 8.33333333333333333e-2);
    above = hn::MulAdd(hn::Sub(z, lit<W>(0.5)), hn::Sub(log_of(z), one),
                       hn::MulAdd(r, series, lit<W>(0.41893853320467274178)));  // log(2 pi) / 2 - 1/2
  }
  const W t = hn::Sub(y, lit<W>(1.65));
  W p = lit<W>(0.00016135071938277087);
  p = madd(p, t, -0.0002846380933288638);
  p = madd(p, t, 0.0002097627403637941);
  p = madd(p, t, -0.0003801866969169262);
  p = madd(p, t, 0.0009035142374754806);
  p = madd(p, t, -0.0016569778002495069);
  p = madd(p, t, 0.0030141622703217224);
  p = madd(p, t, -0.005734340914677473);
  p = madd(p, t, 0.01124538351600264);
  p = madd(p, t, -0.02303353564632651);
  p = madd(p, t, 0.05080885580315558);
  p = madd(p, t, -0.1289946377615436);
  p = madd(p, t, 0.4625526513079182);
  // Adding 0 turns a root into +0.
  const W by_roots = hn::MulAdd(p, hn::Mul(hn::Sub(y, one), hn::Sub(y, lit<W>(2))), hn::Zero(d));
  const auto by_root = hn::And(hn::Gt(y, lit<W>(0.9)), hn::Lt(y, lit<W>(2.4)));
  return {hn::IfThenElse(by_root, by_roots, above), hn::IfThenElse(hn::AndNot(by_root, near), rising, one)};
}
template <class V>
HWY_INLINE V ep_lgamma(V x) {
  const DOf<V> d;
  const auto negative = hn::Lt(x, lit<V>(0));
  V result;
  if (HWY_LIKELY(hn::AllFalse(d, negative))) {
    result = in_double(hn::Abs(x), [](auto w) HWY_ATTR {
      using W = decltype(w);
      const GammaParts<W> parts = gamma_parts_of(w);
      return hn::IfThenElse(hn::Eq(w, lit<W>(0)), hn::Inf(DOf<W>()), hn::Sub(parts.sum, log_of(parts.product)));
    });
  } else {
    // gamma(w) = pi / (sin(pi w) gamma(1 - w)).
    result = in_double(x, [](auto w) HWY_ATTR {
      using W = decltype(w);
      const auto mirrors = hn::Lt(w, lit<W>(0));
      const GammaParts<W> parts = gamma_parts_of(hn::IfThenElse(mirrors, hn::Sub(lit<W>(1), w), hn::Abs(w)));
      const W part = hn::Abs(hn::Sub(w, hn::Round(w)));
      const auto a = angle_of(hn::Mul(lit<W>(3.14159265358979323846), part));
      const W wave = hn::Abs(hn::IfThenElse(bit_of(a, 1), a.cos, a.sin));
      const W divisor = hn::IfThenElse(mirrors, hn::Mul(wave, lit<W>(0.31830988618379067154)), lit<W>(1));
      const W log = log_of(hn::Div(parts.product, divisor));
      const W value = hn::IfThenElse(mirrors, hn::Sub(log, parts.sum), hn::Sub(parts.sum, log));
      const auto pole = hn::And(hn::Le(w, lit<W>(0)), hn::Eq(part, lit<W>(0)));
      return hn::IfThenElse(pole, hn::Inf(DOf<W>()), value);
    });
  }
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(ep_isinf(x), hn::Abs(x), result));
}
#endif
// Vectors of float use the function of double if they have no function of their own. Without that, the scalar dialect
// computes lane by lane.
#if TENON_IN_DOUBLE
#define TENON_OTHERWISE(name)     \
  if constexpr (is_wide<V>)       \
    return lanewise_ep_##name(x); \
  else                            \
    return in_double(x, [](auto w) HWY_ATTR { return ep_##name(w); });
#else
#define TENON_OTHERWISE(name) return lanewise_ep_##name(x);
#endif
#define EP_FLOAT_FUNCTION(name, function, library, shape, first, last, least, near_roots) \
  template <class V>                                                                      \
  concept Has_##name = requires(V x) {                                                    \
    ep_##name(x);                                                                         \
  };                                                                                      \
  template <class V>                                                                      \
  requires(!Has_##name<V>) HWY_INLINE V ep_##name(V x) { TENON_OTHERWISE(name) }
#include "ep_api/accuracy.def"
#undef EP_FLOAT_FUNCTION
#undef TENON_OTHERWISE
#undef TENON_IN_DOUBLE

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
