// The inexact functions of the SIMD prelude dialect, for Highway vectors of double, within the bounds of
// ep_api/accuracy.def. They need a fused multiply-add, so only AVX2 and AVX3 have them. A vector with an argument
// outside a formula's range is computed lane by lane by the scalar dialect.
//
// Sources: exp and sin of a reduced argument, log, asin as in FreeBSD's msun (fdlibm); atan, tanh and sinh near 0 as in
// Cephes; erf near 0 as in W. J. Cody (see sdk/provider/prelude_functions.def).
#if defined(TENON_CPU_SIMD_F64_PRELUDE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_SIMD_F64_PRELUDE_INL_H_
#undef TENON_CPU_SIMD_F64_PRELUDE_INL_H_
#else
#define TENON_CPU_SIMD_F64_PRELUDE_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"
#include "providers/cpu/simd/exact-inl.h"

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class V>
concept Wide = is_wide<V>;

// Evaluates a polynomial in x. The first coefficient belongs to the highest power.
template <class V, class... Rest>
HWY_INLINE V polynomial(V x, double highest, Rest... rest) {
  V p = lit<V>(highest);
  ((p = madd(p, x, rest)), ...);
  return p;
}

// y * 2^n, |n| <= 2000. `shifted` is 1.5 * 2^52 + n, so its low bits are n. A denormal result is rounded once.
template <Wide V>
HWY_INLINE V scale_by(V y, V shifted) {
  const DOf<V> d;
  const hn::RebindToSigned<DOf<V>> di;
  const auto bias = hn::Set(di, 1023);
  const auto n = hn::Sub(hn::BitCast(di, shifted), hn::Set(di, 0x4338000000000000));
  // Half of n, rounded down. AVX2 has no arithmetic shift of 64 bits.
  const auto low = hn::Sub(
      hn::BitCast(di, hn::ShiftRight<1>(hn::BitCast(hn::RebindToUnsigned<DOf<V>>(), hn::Add(n, hn::Set(di, 4096))))),
      hn::Set(di, 2048));
  const V first = hn::BitCast(d, hn::ShiftLeft<52>(hn::Add(low, bias)));
  const V second = hn::BitCast(d, hn::ShiftLeft<52>(hn::Add(hn::Sub(n, low), bias)));
  return hn::Mul(hn::Mul(y, first), second);
}
// x = n ln 2 + r, |r| <= ln 2 / 2; `shifted` is 1.5 * 2^52 + n.
template <Wide V>
struct ReducedF64 {
  V shifted, r;
};
template <Wide V>
HWY_INLINE ReducedF64<V> reduced_by_ln2(V x) {
  const V shifter = lit<V>(6755399441055744.0);
  const V shifted = hn::MulAdd(x, lit<V>(1.44269504088896341), shifter);
  const V n = hn::Sub(shifted, shifter);
  const V r = hn::NegMulAdd(n, lit<V>(2.3190468138462996e-17), hn::NegMulAdd(n, lit<V>(0.6931471805599453), x));
  return {shifted, r};
}
// exp(r) - 1 for |r| <= ln 2 / 2. A minimax fit with an error of 2e-17.
template <Wide V>
HWY_INLINE V expm1_of_reduced(V r) {
  const V p = polynomial(r, 2.51003854955103191e-8, 2.76200884454097482e-7, 2.75572684599970648e-6,
                         2.48015212959543751e-5, 1.98412698630536169e-4, 1.38888889172137169e-3, 8.33333333333006183e-3,
                         4.16666666666241279e-2, 1.66666666666666675e-1, 0.5);
  return hn::MulAdd(hn::Mul(r, r), p, r);
}
// exp(x) * 2^shift; shift is 0 or -1.
template <Wide V>
HWY_INLINE V shifted_exp(V x, double shift) {
  const V bounded = hn::Min(hn::Max(x, lit<V>(-746.0)), lit<V>(711.0));
  const ReducedF64<V> e = reduced_by_ln2(bounded);
  const V y = hn::Add(expm1_of_reduced(e.r), lit<V>(1));
  const V result = scale_by(y, shift == 0 ? e.shifted : hn::Add(e.shifted, lit<V>(shift)));
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}
template <Wide V>
HWY_INLINE V ep_exp(V x) {
  return shifted_exp(x, 0);
}
template <Wide V>
HWY_INLINE V ep_exp2(V x) {
  const V bounded = hn::Min(hn::Max(x, lit<V>(-1076.0)), lit<V>(1025.0));
  const V shifter = lit<V>(6755399441055744.0);
  const V shifted = hn::Add(bounded, shifter);
  const V r = hn::Mul(hn::Sub(bounded, hn::Sub(shifted, shifter)), lit<V>(0.6931471805599453));
  const V y = hn::Add(expm1_of_reduced(r), lit<V>(1));
  return hn::IfThenElse(hn::IsNaN(x), x, scale_by(y, shifted));
}
// exp for x <= 0, for softmax: results below the least normal number may become 0. NaN gives NaN.
template <Wide V>
HWY_INLINE V exp_of_nonpositive(V x) {
  const DOf<V> d;
  const hn::RebindToSigned<DOf<V>> di;
  const V least = lit<V>(-709.0);
  const ReducedF64<V> e = reduced_by_ln2(hn::IfThenElse(hn::Lt(x, least), least, x));
  const auto power = hn::ShiftLeft<52>(hn::Add(hn::BitCast(di, e.shifted), hn::Set(di, 1023)));
  return hn::Mul(hn::Add(expm1_of_reduced(e.r), lit<V>(1)), hn::BitCast(d, power));
}
template <Wide V>
HWY_INLINE V ep_expm1(V x) {
  const V bounded = hn::Min(hn::Max(x, lit<V>(-40.0)), lit<V>(709.79));
  const ReducedF64<V> e = reduced_by_ln2(bounded);
  const V p = expm1_of_reduced(e.r);
  // 2^(n - 1) (p + 1) - 1/2 is doubled at the end, so that 2^1024 does not overflow too early.
  const V half = scale_by(lit<V>(0.5), e.shifted);
  const V y = hn::MulAdd(half, p, hn::Sub(half, lit<V>(0.5)));
  const V result = hn::IfThenElse(hn::Eq(e.shifted, lit<V>(6755399441055744.0)), p, hn::Add(y, y));
  return hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Eq(x, lit<V>(0))), x, result);
}

// x = m 2^e with sqrt(1/2) <= m < sqrt(2), for positive finite x.
template <Wide V>
struct Parts {
  V e, m;
};
template <Wide V>
HWY_INLINE Parts<V> parts_of(V x) {
  const DOf<V> d;
  const hn::RebindToSigned<DOf<V>> di;
  constexpr int64_t root_half = 0x3fe6a09e667f3bcd;
  const auto denormal = hn::Lt(x, lit<V>(2.2250738585072014e-308));
  const V normal = hn::IfThenElse(denormal, hn::Mul(x, lit<V>(18014398509481984.0)), x);
  const auto shifted = hn::Add(hn::BitCast(di, normal), hn::Set(di, 0x3ff0000000000000 - root_half));
  // Converts the exponent: it is the low bits of a double near 2^52 + 2^51.
  const auto exponent =
      hn::Add(hn::BitCast(di, hn::ShiftRight<52>(hn::BitCast(hn::RebindToUnsigned<DOf<V>>(), shifted))),
              hn::Set(di, 0x4338000000000000));
  const V bias =
      hn::IfThenElse(denormal, lit<V>(6755399441055744.0 + 1023.0 + 54.0), lit<V>(6755399441055744.0 + 1023.0));
  const auto mantissa = hn::Add(hn::And(shifted, hn::Set(di, 0x000fffffffffffff)), hn::Set(di, root_half));
  return {hn::Sub(hn::BitCast(d, exponent), bias), hn::BitCast(d, mantissa)};
}
// (log((1 + s) / (1 - s)) - 2 s) / s^3 as a function of s^2. A minimax fit; the logarithm's error is 3e-20.
template <Wide V>
HWY_INLINE V log_tail(V z) {
  return polynomial(z, 1.30894451452467836e-1, 1.32685033127947079e-1, 1.53862497881961069e-1, 1.8181795454526501e-1,
                    2.22222223934526275e-1, 2.85714285707959347e-1, 4.00000000000008895e-1, 6.66666666666666665e-1);
}
// log(m) = f - rest, f = m - 1.
template <Wide V>
struct LogOfMantissa {
  V f, rest;
};
template <Wide V>
HWY_INLINE LogOfMantissa<V> log_of_mantissa(V m) {
  const V f = hn::Sub(m, lit<V>(1));
  const V s = hn::Div(f, hn::Add(f, lit<V>(2)));
  const V z = hn::Mul(s, s);
  const V half = hn::Mul(hn::Mul(f, f), lit<V>(0.5));
  return {f, hn::NegMulAdd(s, madd(z, log_tail(z), half), half)};
}
// NaN below 0 and for NaN, -inf at 0, +inf at +inf.
template <Wide V>
HWY_INLINE V log_with_edges(V x, V result) {
  const V infinity = lit<V>(std::numeric_limits<double>::infinity());
  const auto usual = hn::And(hn::Gt(x, lit<V>(0)), hn::Lt(x, infinity));
  if (HWY_LIKELY(hn::AllTrue(DOf<V>(), usual))) return result;
  V y = hn::IfThenElse(hn::Eq(x, infinity), infinity, result);
  y = hn::IfThenElse(hn::Eq(x, lit<V>(0)), hn::Neg(infinity), y);
  y = hn::IfThenElse(hn::Lt(x, lit<V>(0)), lit<V>(std::numeric_limits<double>::quiet_NaN()), y);
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}
// e ln 2 + f - (rest - low). ln 2 is split in two parts; e times the first part is exact.
template <Wide V>
HWY_INLINE V joined_log(V e, LogOfMantissa<V> l, V low) {
  const V small = hn::MulAdd(e, lit<V>(1.90821492927058770002e-10), low);
  return hn::MulAdd(e, lit<V>(6.93147180369123816490e-01), hn::Sub(l.f, hn::Sub(l.rest, small)));
}
template <Wide V>
HWY_INLINE V ep_log(V x) {
  const Parts<V> parts = parts_of(x);
  return log_with_edges(x, joined_log(parts.e, log_of_mantissa(parts.m), lit<V>(0)));
}
template <Wide V>
HWY_INLINE V ep_log2(V x) {
  const Parts<V> parts = parts_of(x);
  const LogOfMantissa<V> l = log_of_mantissa(parts.m);
  return log_with_edges(x, hn::MulAdd(hn::Sub(l.f, l.rest), lit<V>(1.44269504088896341), parts.e));
}
template <Wide V>
HWY_INLINE V ep_log10(V x) {
  const Parts<V> parts = parts_of(x);
  const LogOfMantissa<V> l = log_of_mantissa(parts.m);
  const V low =
      hn::MulAdd(parts.e, lit<V>(8.241712586023572e-13), hn::Mul(hn::Sub(l.f, l.rest), lit<V>(0.434294481903251828)));
  return log_with_edges(x, hn::MulAdd(parts.e, lit<V>(0.301029995663157), low));
}
// log(u) + c / u, where u is 1 + x rounded and c is the rounding error.
template <Wide V>
HWY_INLINE V ep_log1p(V x) {
  const V one = lit<V>(1);
  const V u = hn::Add(one, x);
  const V lost = hn::IfThenElse(hn::Gt(x, one), hn::Sub(one, hn::Sub(u, x)), hn::Sub(x, hn::Sub(u, one)));
  const Parts<V> parts = parts_of(u);
  const V result = log_with_edges(u, joined_log(parts.e, log_of_mantissa(parts.m), hn::Div(lost, u)));
  // Where x does not change u, and where 1 does not.
  const auto same = hn::Or(hn::Eq(u, one), hn::Eq(x, lit<V>(std::numeric_limits<double>::infinity())));
  return hn::IfThenElse(same, x, hn::IfThenElse(hn::Eq(x, hn::Neg(one)), log_with_edges(u, u), result));
}

// sin(r) and cos(r) of r = x - n pi/2, |r| <= pi/4; n is in the low bits of `quadrant`.
template <Wide V>
struct AngleF64 {
  V sin, cos;
  hn::Vec<hn::RebindToSigned<DOf<V>>> quadrant;
};
template <Wide V>
HWY_INLINE AngleF64<V> reduced_angle(V x) {
  const V shifter = lit<V>(6755399441055744.0);
  const V shifted = hn::MulAdd(x, lit<V>(0.636619772367581343), shifter);
  const V n = hn::Sub(shifted, shifter);
  V r = hn::NegMulAdd(n, lit<V>(1.5707963267948966), x);
  r = hn::NegMulAdd(n, lit<V>(6.123233995736766e-17), r);
  r = hn::NegMulAdd(n, lit<V>(-1.4973849048591698e-33), r);
  const V z = hn::Mul(r, r);
  const V s = polynomial(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
                         -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01);
  const V c = polynomial(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
                         2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02);
  const V half = hn::Mul(z, lit<V>(0.5));
  const V w = hn::Sub(lit<V>(1), half);
  const V cos = hn::Add(w, hn::MulAdd(hn::Mul(z, z), c, hn::Sub(hn::Sub(lit<V>(1), w), half)));
  const V sin = hn::IfThenElse(hn::Eq(x, lit<V>(0)), x, hn::MulAdd(hn::Mul(s, z), r, r));  // keeps the sign of zero
  return {sin, cos, hn::BitCast(hn::RebindToSigned<DOf<V>>(), shifted)};
}
template <Wide V>
HWY_INLINE MOf<V> has_bit(const AngleF64<V>& angle, int64_t bit) {
  const hn::RebindToSigned<DOf<V>> bits;
  return hn::RebindMask(DOf<V>(), hn::TestBit(angle.quadrant, hn::Set(bits, bit)));
}
template <Wide V>
HWY_INLINE bool all_within(V x, double limit) {
  return hn::AllTrue(DOf<V>(), hn::Lt(hn::Abs(x), lit<V>(limit)));
}
template <Wide V>
HWY_INLINE V ep_sin(V x) {
  if (HWY_UNLIKELY(!all_within(x, 1048576.0))) return lanewise_ep_sin(x);
  const AngleF64<V> a = reduced_angle(x);
  const V value = hn::IfThenElse(has_bit(a, 1), a.cos, a.sin);
  return hn::IfThenElse(has_bit(a, 2), hn::Neg(value), value);
}
template <Wide V>
HWY_INLINE V ep_cos(V x) {
  if (HWY_UNLIKELY(!all_within(x, 1048576.0))) return lanewise_ep_cos(x);
  AngleF64<V> a = reduced_angle(x);
  const V value = hn::IfThenElse(has_bit(a, 1), a.sin, a.cos);
  a.quadrant = hn::Add(a.quadrant, hn::Set(hn::RebindToSigned<DOf<V>>(), 1));
  return hn::IfThenElse(has_bit(a, 2), hn::Neg(value), value);
}
template <Wide V>
HWY_INLINE V ep_tan(V x) {
  if (HWY_UNLIKELY(!all_within(x, 1048576.0))) return lanewise_ep_tan(x);
  const AngleF64<V> a = reduced_angle(x);
  const auto odd = has_bit(a, 1);
  return hn::Div(hn::IfThenElse(odd, hn::Neg(a.cos), a.sin), hn::IfThenElse(odd, a.sin, a.cos));
}

// (asin(x) - x) / x as a function of x^2 <= 1/4.
template <Wide V>
HWY_INLINE V asin_tail(V z) {
  const V p = polynomial(z, 3.47933107596021167570e-05, 7.91534994289814532176e-04, -4.00555345006794114027e-02,
                         2.01212532134862925881e-01, -3.25565818622400915405e-01, 1.66666666666666657415e-01);
  const V q = polynomial(z, 7.70381505559019352791e-02, -6.88283971605453293030e-01, 2.02094576023350569471e+00,
                         -2.40339491173441421878e+00, 1.0);
  return hn::Div(hn::Mul(z, p), q);
}
// asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)). Outside [-1, 1] the square root gives NaN.
template <Wide V>
HWY_INLINE V ep_asin(V x) {
  const V magnitude = hn::Abs(x);
  const auto small = hn::Le(magnitude, lit<V>(0.5));
  const V rest = hn::Mul(hn::Sub(lit<V>(1), magnitude), lit<V>(0.5));
  const V z = hn::IfThenElse(small, hn::Mul(x, x), rest);
  const V arm = hn::IfThenElse(small, magnitude, hn::Sqrt(rest));
  const V part = hn::MulAdd(asin_tail(z), arm, arm);
  const V large = hn::Sub(lit<V>(1.5707963267948966), hn::MulSub(part, lit<V>(2), lit<V>(6.123233995736766e-17)));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(hn::IfThenElse(small, part, large), x));
}
template <Wide V>
HWY_INLINE V ep_acos(V x) {
  const V magnitude = hn::Abs(x);
  const auto small = hn::Le(magnitude, lit<V>(0.5));
  const V rest = hn::Mul(hn::Sub(lit<V>(1), magnitude), lit<V>(0.5));
  const V z = hn::IfThenElse(small, hn::Mul(x, x), rest);
  const V arm = hn::IfThenElse(small, x, hn::Sqrt(rest));
  const V part = hn::MulAdd(asin_tail(z), arm, arm);
  const V low = lit<V>(6.123233995736766e-17);
  const V middle = hn::Sub(lit<V>(1.5707963267948966), hn::Sub(part, low));
  const V twice = hn::Add(part, part);
  const V left = hn::Sub(lit<V>(3.141592653589793), hn::Sub(twice, hn::Add(low, low)));
  const V large = hn::IfThenElse(hn::Lt(x, lit<V>(0)), left, twice);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(small, middle, large));
}
// Subtracting pi/4 or pi/2 reduces the argument to [-0.42, 0.66].
template <Wide V>
HWY_INLINE V ep_atan(V x) {
  const V magnitude = hn::Abs(x);
  const auto far = hn::Gt(magnitude, lit<V>(2.41421356237309504880));
  const auto middle = hn::Gt(magnitude, lit<V>(0.66));
  const V one = lit<V>(1), zero = lit<V>(0);
  const V over = hn::IfThenElse(far, hn::Neg(one), hn::IfThenElse(middle, hn::Sub(magnitude, one), magnitude));
  const V under = hn::IfThenElse(far, magnitude, hn::IfThenElse(middle, hn::Add(magnitude, one), one));
  const V moved =
      hn::IfThenElse(far, lit<V>(1.5707963267948966), hn::IfThenElse(middle, lit<V>(0.7853981633974483), zero));
  const V low =
      hn::IfThenElse(far, lit<V>(6.123233995736766e-17), hn::IfThenElse(middle, lit<V>(3.061616997868383e-17), zero));
  const V y = hn::Div(over, under);
  const V z = hn::Mul(y, y);
  const V p = polynomial(z, -8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
                         -1.228866684490136173410e2, -6.485021904942025371773e1);
  const V q = polynomial(z, 1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
                         4.853903996359136964868e2, 1.945506571482613964425e2);
  const V tail = hn::Div(hn::Mul(z, p), q);
  const V result = hn::Add(moved, hn::Add(hn::MulAdd(tail, y, low), y));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(result, x));
}

// A rational function near 0, else 1 - 2 / (exp(2 x) + 1). Both share one division.
template <Wide V>
HWY_INLINE V ep_tanh(V x) {
  const V magnitude = hn::Min(hn::Abs(x), lit<V>(20.0));
  const auto small = hn::Lt(magnitude, lit<V>(0.625));
  const V z = hn::Mul(magnitude, magnitude);
  const V p = polynomial(z, -9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3);
  const V q = polynomial(z, 1.0, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3);
  const V e = ep_exp(hn::Add(magnitude, magnitude));
  const V over = hn::IfThenElse(small, hn::Mul(hn::Mul(magnitude, z), p), lit<V>(-2));
  const V under = hn::IfThenElse(small, q, hn::Add(e, lit<V>(1)));
  const V base = hn::IfThenElse(small, magnitude, lit<V>(1));
  const V result = hn::Add(base, hn::Div(over, under));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(result, x));
}
template <Wide V>
HWY_INLINE V ep_sinh(V x) {
  const V magnitude = hn::Abs(x);
  const auto small = hn::Le(magnitude, lit<V>(1));
  const V z = hn::Mul(magnitude, magnitude);
  const V p = polynomial(z, -7.89474443963537015605e-1, -1.63725857525983828727e2, -1.15614435765005216044e4,
                         -3.51754964808151394800e5);
  const V q = polynomial(z, 1.0, -2.77711081420602794433e2, 3.61578279834431989373e4, -2.11052978884890840399e6);
  const V e = shifted_exp(magnitude, -1);
  const V over = hn::IfThenElse(small, hn::Mul(hn::Mul(magnitude, z), p), lit<V>(-0.25));
  const V base = hn::IfThenElse(small, magnitude, e);
  const V result = hn::Add(base, hn::Div(over, hn::IfThenElse(small, q, e)));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(result, x));
}
template <Wide V>
HWY_INLINE V ep_cosh(V x) {
  const V e = shifted_exp(hn::Abs(x), -1);
  return hn::Add(e, hn::Div(lit<V>(0.25), e));
}
// log1p(x + x^2 / (1 + sqrt(1 + x^2)))
template <Wide V>
HWY_INLINE V ep_asinh(V x) {
  const V magnitude = hn::Abs(x);
  if (HWY_UNLIKELY(!all_within(magnitude, 1e100))) return lanewise_ep_asinh(x);
  const V z = hn::Mul(magnitude, magnitude);
  const V root = hn::Sqrt(hn::Add(z, lit<V>(1)));
  return hn::CopySign(ep_log1p(hn::Add(magnitude, hn::Div(z, hn::Add(root, lit<V>(1))))), x);
}
// log1p(t + sqrt(2 t + t^2)), t = x - 1
template <Wide V>
HWY_INLINE V ep_acosh(V x) {
  const auto usual = hn::And(hn::Ge(x, lit<V>(1)), hn::Lt(x, lit<V>(1e100)));
  if (HWY_UNLIKELY(!hn::AllTrue(DOf<V>(), usual))) return lanewise_ep_acosh(x);
  const V t = hn::Sub(x, lit<V>(1));
  return ep_log1p(hn::Add(t, hn::Sqrt(hn::MulAdd(t, t, hn::Add(t, t)))));
}
template <Wide V>
HWY_INLINE V ep_atanh(V x) {
  const V magnitude = hn::Abs(x);
  const V ratio = hn::Div(hn::Add(magnitude, magnitude), hn::Sub(lit<V>(1), magnitude));
  const V result = hn::Mul(ep_log1p(ratio), lit<V>(0.5));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(result, x));
}

// Cody's rational functions: erf(x) / x in x^2 up to 1/2, and erfc(x) exp(x^2) in x above.
template <Wide V>
HWY_INLINE V erf_over(V z) {
  return polynomial(z, 1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2,
                    3.20937758913846947e3);
}
template <Wide V>
HWY_INLINE V erf_under(V z) {
  return polynomial(z, 1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3);
}
template <Wide V>
HWY_INLINE V erfc_over(V t) {
  return polynomial(t, 2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1,
                    2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
                    1.23033935479799725e3);
}
template <Wide V>
HWY_INLINE V erfc_under(V t) {
  return polynomial(t, 1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
                    3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3);
}
template <Wide V>
HWY_INLINE V ep_erf(V x) {
  const V t = hn::Min(hn::Abs(x), lit<V>(6.0));
  const auto small = hn::Lt(t, lit<V>(0.5));
  const V z = hn::Mul(t, t);
  const V quotient =
      hn::Div(hn::IfThenElse(small, erf_over(z), erfc_over(t)), hn::IfThenElse(small, erf_under(z), erfc_under(t)));
  const V large = hn::NegMulAdd(quotient, ep_exp(hn::Neg(z)), lit<V>(1));
  const V result = hn::IfThenElse(small, hn::Mul(quotient, t), large);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(result, x));
}
// 1 - erf(x) for |x| < 1/2, and 2 - erfc(-x) for x <= -1/2. Else exp(-x^2), with the square in two parts, times a
// rational function in x up to 4 and in 1/x^2 above.
template <Wide V>
HWY_INLINE V ep_erfc(V x) {
  const V magnitude = hn::Min(hn::Abs(x), lit<V>(28.0));
  const auto small = hn::Lt(magnitude, lit<V>(0.5));
  const V t = hn::Max(magnitude, lit<V>(0.5));
  const V square = hn::Mul(magnitude, magnitude);
  const V square_low = hn::MulSub(magnitude, magnitude, square);
  const V w = hn::Div(lit<V>(1), hn::Mul(t, t));
  const V tail_over = polynomial(w, 1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1,
                                 1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4);
  const V tail_under = polynomial(w, 1.0, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1,
                                  6.05183413124413191e-2, 2.33520497626869185e-3);
  const V far_over = hn::MulSub(lit<V>(0.56418958354775628695), tail_under, hn::Mul(w, tail_over));
  const auto far = hn::Gt(t, lit<V>(4.0));
  V over = hn::IfThenElse(far, far_over, erfc_over(t));
  V under = hn::IfThenElse(far, hn::Mul(t, tail_under), erfc_under(t));
  over = hn::IfThenElse(small, hn::Mul(erf_over(square), x), over);
  under = hn::IfThenElse(small, erf_under(square), under);
  const V quotient = hn::Div(over, under);
  const V bell = ep_exp(hn::Neg(square));
  const V large = hn::Mul(quotient, hn::NegMulAdd(bell, square_low, bell));
  const V beyond = hn::IfThenElse(hn::Lt(x, lit<V>(0)), hn::Sub(lit<V>(2), large), large);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElse(small, hn::Sub(lit<V>(1), quotient), beyond));
}

// |x|^y = exp(y log |x|), with logarithm and product in two parts each. For negative x and integer y, the sign is
// (-1)^y; other powers of a negative x do not exist.
template <Wide V>
HWY_INLINE V power_of_positive(V x, V y) {
  const Parts<V> parts = parts_of(x);
  const V f = hn::Sub(parts.m, lit<V>(1));
  const V inverse = hn::Div(lit<V>(1), hn::Add(f, lit<V>(2)));
  const V s = hn::Mul(f, inverse);
  // The rounding error of the quotient is f - s (f + 2); the rounding error of the sum f + 2 is f - ((f + 2) - 2).
  const V sum = hn::Add(f, lit<V>(2));
  const V sum_low = hn::Sub(f, hn::Sub(sum, lit<V>(2)));
  const V s_low = hn::Mul(hn::NegMulAdd(s, sum_low, hn::NegMulAdd(s, sum, f)), inverse);
  const V z = hn::Mul(s, s);
  const V cube = hn::Mul(hn::Mul(z, s), log_tail(z));
  // e ln 2 + 2 s, and the rounding error of the sum.
  const V whole = hn::Mul(parts.e, lit<V>(6.93147180369123816490e-01));  // exact
  const V twice = hn::Add(s, s);
  const V high = hn::Add(whole, twice);
  const V back = hn::Sub(high, whole);
  const V lost = hn::Add(hn::Sub(whole, hn::Sub(high, back)), hn::Sub(twice, back));
  const V low =
      hn::Add(hn::MulAdd(parts.e, lit<V>(1.90821492927058770002e-10), lost), hn::Add(cube, hn::Add(s_low, s_low)));
  const V log = hn::Add(high, low);
  const V log_low = hn::Add(hn::Sub(high, log), low);
  const V product = hn::Mul(y, log);
  const V bounded = hn::Min(hn::Max(product, lit<V>(-746.0)), lit<V>(711.0));
  // Outside the bounds the low part of the product may have any size.
  const V product_low =
      hn::IfThenElseZero(hn::Eq(bounded, product), hn::MulAdd(y, log_low, hn::MulSub(y, log, product)));
  ReducedF64<V> e = reduced_by_ln2(bounded);
  const V power = hn::Add(expm1_of_reduced(hn::Add(e.r, product_low)), lit<V>(1));
  return scale_by(power, e.shifted);
}
template <Wide V>
HWY_INLINE V ep_pow(V x, V y) {
  const DOf<V> d;
  const V base = hn::Abs(x);
  const auto ordinary =
      hn::And(hn::And(hn::Gt(base, lit<V>(0)), hn::Lt(base, lit<V>(1.7e308))), hn::Lt(hn::Abs(y), lit<V>(1e100)));
  if (HWY_UNLIKELY(!hn::AllTrue(d, ordinary))) return lanewise_ep_pow(x, y);
  const V power = power_of_positive(base, y);
  const auto negative = hn::Lt(x, lit<V>(0));
  if (HWY_LIKELY(hn::AllFalse(d, negative))) return power;
  const V half = hn::Mul(y, lit<V>(0.5));
  const auto whole = hn::Eq(ep_trunc(y), y);
  const auto even = hn::Eq(ep_trunc(half), half);
  const V nan = lit<V>(std::numeric_limits<double>::quiet_NaN());
  const V with_sign = hn::IfThenElse(even, power, hn::Neg(power));
  return hn::IfThenElse(negative, hn::IfThenElse(whole, with_sign, nan), power);
}

// x - q y, q = trunc(x / y). One step is exact: even if the quotient is off by one, the remainder is a double.
template <Wide V>
HWY_INLINE V ep_fmod(V x, V y) {
  const V magnitude = hn::Abs(x), divisor = hn::Abs(y);
  const V span = hn::Mul(divisor, lit<V>(1125899906842624.0));  // 2^50
  const auto ordinary =
      hn::And(hn::Lt(magnitude, span), hn::And(hn::Lt(span, lit<V>(1e307)), hn::Gt(divisor, lit<V>(1e-290))));
  if (HWY_UNLIKELY(!hn::AllTrue(DOf<V>(), ordinary))) return lanewise_ep_fmod(x, y);
  V rest = hn::NegMulAdd(hn::Trunc(hn::Div(magnitude, divisor)), divisor, magnitude);
  rest = hn::IfThenElse(hn::Lt(rest, lit<V>(0)), hn::Add(rest, divisor), rest);
  rest = hn::IfThenElse(hn::Ge(rest, divisor), hn::Sub(rest, divisor), rest);
  return hn::CopySign(rest, x);
}

#define EP_FUNCTION \
  template <Wide V> \
  HWY_INLINE V
#define EP_V V
#define EP_OWN_ERFC
#define ep_lit(value) lit<V>(value)
#include "sdk/provider/prelude_functions.def"
#undef EP_FUNCTION
#undef EP_V
#undef EP_OWN_ERFC
#undef ep_lit

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX2 or AVX3

#endif
