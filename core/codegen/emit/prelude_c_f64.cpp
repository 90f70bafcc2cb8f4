// The C prelude's functions with an approximation error, on vectors of double, within the bounds of
// ep_api/accuracy.def: those of providers/cpu/simd (f64_prelude-inl.h, which names the sources), for any vector type.
#include "core/codegen/emit/prelude_c.h"

namespace tenon::codegen {
namespace {

constexpr std::string_view kFunctions =
    R"C(EP_INLINE $V ep_min_$s($V x, $V y) { return ep_select_$s((x < y) | (x != x), x, y); }
EP_INLINE $V ep_max_$s($V x, $V y) { return ep_select_$s((x > y) | (x != x), x, y); }
)C";

// These need a fused multiply-add. `$P(x, a, b, c)` is the polynomial (a x + b) x + c.
constexpr std::string_view kFusedFunctions =
    R"C(EP_INLINE ep_v_f64 ep_p_f64(ep_v_f64 p, ep_v_f64 x, double c) { return ep_fma_f64(p, x, ep_lit_f64(c)); }
// In a function of its own, so that no compiler takes the product, rounded, from elsewhere.
EP_CALL ep_v_f64 ep_fma_apart_f64(ep_v_f64 x, ep_v_f64 y, ep_v_f64 z) { return ep_fma_f64(x, y, z); }
// Below and above bounds a bound; NaN stays.
EP_INLINE ep_v_f64 ep_clip_f64(ep_v_f64 x, double lo, double hi) {
  const ep_v_f64 least = ep_select_f64(x < ep_lit_f64(lo), ep_lit_f64(lo), x);
  return ep_select_f64(least > ep_lit_f64(hi), ep_lit_f64(hi), least);
}
// y * 2^n, where `shifted` is 1.5 * 2^52 + n, and |n| <= 2000. A denormal result is rounded once.
EP_INLINE ep_v_f64 ep_scaled_f64(ep_v_f64 y, ep_v_f64 shifted) {
  const ep_v_i64 n = (ep_v_i64)shifted - 0x4338000000000000;
  const ep_v_i64 half = n >> 1;
  return y * (ep_v_f64)((half + 1023) << 52) * (ep_v_f64)((n - half + 1023) << 52);
}
// x = n ln 2 + r, |r| <= ln 2 / 2. Gives r, and 1.5 * 2^52 + n.
EP_INLINE ep_v_f64 ep_by_ln2_f64(ep_v_f64 x, ep_v_f64* shifted) {
  *shifted = ep_fma_f64(x, ep_lit_f64(1.44269504088896341), ep_lit_f64(6755399441055744.0));
  const ep_v_f64 n = *shifted - ep_lit_f64(6755399441055744.0);
  const ep_v_f64 r = ep_fma_f64(n, ep_lit_f64(-0.6931471805599453), x);
  return ep_fma_f64(n, ep_lit_f64(-2.3190468138462996e-17), r);
}
// exp(r) - 1 for |r| <= ln 2 / 2, 2e-17 off.
EP_INLINE ep_v_f64 ep_expm1_near_f64(ep_v_f64 r) {
  const ep_v_f64 p = $P(r, 2.51003854955103191e-8, 2.76200884454097482e-7, 2.75572684599970648e-6,
                        2.48015212959543751e-5, 1.98412698630536169e-4, 1.38888889172137169e-3, 8.33333333333006183e-3,
                        4.16666666666241279e-2, 1.66666666666666675e-1, 0.5);
  return ep_fma_f64(r * r, p, r);
}
// exp(x) 2^shift, of which `shift` is 0 or -1.
EP_INLINE ep_v_f64 ep_shifted_exp_f64(ep_v_f64 x, double shift) {
  ep_v_f64 shifted;
  const ep_v_f64 y = ep_expm1_near_f64(ep_by_ln2_f64(ep_clip_f64(x, -746.0, 711.0), &shifted)) + ep_lit_f64(1);
  return ep_select_f64(x != x, x, ep_scaled_f64(y, shifted + ep_lit_f64(shift)));
}
EP_INLINE ep_v_f64 ep_exp_f64(ep_v_f64 x) { return ep_shifted_exp_f64(x, 0); }
EP_INLINE ep_v_f64 ep_exp2_f64(ep_v_f64 x) {
  const ep_v_f64 bounded = ep_clip_f64(x, -1076.0, 1025.0);
  const ep_v_f64 shifted = bounded + ep_lit_f64(6755399441055744.0);
  const ep_v_f64 r = (bounded - (shifted - ep_lit_f64(6755399441055744.0))) * ep_lit_f64(0.6931471805599453);
  return ep_select_f64(x != x, x, ep_scaled_f64(ep_expm1_near_f64(r) + ep_lit_f64(1), shifted));
}
// 2^(n - 1) (p + 1) - 1/2, doubled at the end, so that 2^1024 does not overflow too early.
EP_INLINE ep_v_f64 ep_expm1_f64(ep_v_f64 x) {
  ep_v_f64 shifted;
  const ep_v_f64 p = ep_expm1_near_f64(ep_by_ln2_f64(ep_clip_f64(x, -40.0, 709.79), &shifted));
  const ep_v_f64 half = ep_scaled_f64(ep_lit_f64(0.5), shifted);
  const ep_v_f64 y = ep_fma_f64(half, p, half - ep_lit_f64(0.5));
  const ep_v_f64 result = ep_select_f64(shifted == ep_lit_f64(6755399441055744.0), p, y + y);
  return ep_select_f64((x != x) | (x == ($V){}), x, result);
}
// x = m 2^e with sqrt(1/2) <= m < sqrt(2), x positive and finite. Gives e.
EP_INLINE ep_v_f64 ep_parts_f64(ep_v_f64 x, ep_v_f64* m) {
  const ep_v_i64 denormal = x < ep_lit_f64(2.2250738585072014e-308);
  const ep_v_f64 normal = ep_select_f64(denormal, x * ep_lit_f64(18014398509481984.0), x);
  const ep_v_i64 shifted = (ep_v_i64)normal + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
  *m = (ep_v_f64)((shifted & 0x000fffffffffffff) + 0x3fe6a09e667f3bcd);
  // The exponent as the low bits of a double near 2^52 + 2^51.
  const ep_v_f64 e = (ep_v_f64)((ep_v_i64)((ep_v_u64)shifted >> 52) + 0x4338000000000000);
  return e - ep_select_f64(denormal, ep_lit_f64(6755399441056821.0), ep_lit_f64(6755399441056767.0));
}
// (log((1 + s) / (1 - s)) - 2 s) / s^3 as a function of s^2, 3e-20 of the logarithm off.
EP_INLINE ep_v_f64 ep_log_tail_f64(ep_v_f64 z) {
  return $P(z, 1.30894451452467836e-1, 1.32685033127947079e-1, 1.53862497881961069e-1, 1.8181795454526501e-1,
            2.22222223934526275e-1, 2.85714285707959347e-1, 4.00000000000008895e-1, 6.66666666666666665e-1);
}
// log(m) = f - rest, f = m - 1. Gives rest.
EP_INLINE ep_v_f64 ep_log_rest_f64(ep_v_f64 m, ep_v_f64* f) {
  *f = m - ep_lit_f64(1);
  const ep_v_f64 s = *f / (*f + ep_lit_f64(2));
  const ep_v_f64 z = s * s;
  const ep_v_f64 half = *f * *f * ep_lit_f64(0.5);
  return ep_fma_f64(-s, ep_fma_f64(z, ep_log_tail_f64(z), half), half);
}
// NaN below 0 and for NaN, -inf at 0, +inf at +inf.
EP_INLINE ep_v_f64 ep_log_edges_f64(ep_v_f64 x, ep_v_f64 y) {
  if (ep_all_f64((x > ($V){}) & (x < ep_highest_f64()))) return y;
  y = ep_select_f64(x == ep_highest_f64(), x, y);
  y = ep_select_f64(x == ($V){}, ep_lowest_f64(), y);
  y = ep_select_f64(x < ($V){}, ep_lit_f64(__builtin_nan("")), y);
  return ep_select_f64(x != x, x, y);
}
// e ln 2 + log(m) + low; ln 2 in two parts, of which e times the first is exact.
EP_INLINE ep_v_f64 ep_joined_log_f64(ep_v_f64 e, ep_v_f64 m, ep_v_f64 low) {
  ep_v_f64 f;
  const ep_v_f64 rest = ep_log_rest_f64(m, &f);
  const ep_v_f64 small = ep_fma_f64(e, ep_lit_f64(1.90821492927058770002e-10), low);
  return ep_fma_f64(e, ep_lit_f64(6.93147180369123816490e-01), f - (rest - small));
}
EP_INLINE ep_v_f64 ep_log_f64(ep_v_f64 x) {
  ep_v_f64 m;
  const ep_v_f64 e = ep_parts_f64(x, &m);
  return ep_log_edges_f64(x, ep_joined_log_f64(e, m, ($V){}));
}
EP_INLINE ep_v_f64 ep_log2_f64(ep_v_f64 x) {
  ep_v_f64 m, f;
  const ep_v_f64 e = ep_parts_f64(x, &m);
  const ep_v_f64 rest = ep_log_rest_f64(m, &f);
  return ep_log_edges_f64(x, ep_fma_f64(f - rest, ep_lit_f64(1.44269504088896341), e));
}
EP_INLINE ep_v_f64 ep_log10_f64(ep_v_f64 x) {
  ep_v_f64 m, f;
  const ep_v_f64 e = ep_parts_f64(x, &m);
  const ep_v_f64 rest = ep_log_rest_f64(m, &f);
  const ep_v_f64 low = ep_fma_f64(e, ep_lit_f64(8.241712586023572e-13), (f - rest) * ep_lit_f64(0.434294481903251828));
  return ep_log_edges_f64(x, ep_fma_f64(e, ep_lit_f64(0.301029995663157), low));
}
// log(u) + c / u, where u is 1 + x rounded and c what the rounding lost.
EP_INLINE ep_v_f64 ep_log1p_f64(ep_v_f64 x) {
  const ep_v_f64 one = ep_lit_f64(1);
  const ep_v_f64 u = one + x;
  const ep_v_f64 lost = ep_select_f64(x > one, one - (u - x), x - (u - one));
  ep_v_f64 m;
  const ep_v_f64 e = ep_parts_f64(u, &m);
  const ep_v_f64 y = ep_log_edges_f64(u, ep_joined_log_f64(e, m, ep_select_f64(u == ($V){}, u, lost / u)));
  return ep_select_f64((u == one) | (x == ep_highest_f64()), x, y);
}
// x - n pi/2, at most pi/4 in magnitude, and n in the low bits of `quadrant`.
EP_INLINE ep_v_f64 ep_angle_f64(ep_v_f64 x, ep_v_i64* quadrant) {
  const ep_v_f64 shifted = ep_fma_f64(x, ep_lit_f64(0.636619772367581343), ep_lit_f64(6755399441055744.0));
  const ep_v_f64 n = shifted - ep_lit_f64(6755399441055744.0);
  *quadrant = (ep_v_i64)shifted;
  ep_v_f64 r = ep_fma_f64(n, ep_lit_f64(-1.5707963267948966), x);
  r = ep_fma_f64(n, ep_lit_f64(-6.123233995736766e-17), r);
  return ep_fma_f64(n, ep_lit_f64(1.4973849048591698e-33), r);
}
EP_INLINE ep_v_f64 ep_sine_f64(ep_v_f64 r) {
  const ep_v_f64 z = r * r;
  const ep_v_f64 s = $P(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06,
                        -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01);
  return ep_select_f64(r == ($V){}, r, ep_fma_f64(s * z, r, r));
}
EP_INLINE ep_v_f64 ep_cosine_f64(ep_v_f64 r) {
  const ep_v_f64 z = r * r;
  const ep_v_f64 c = $P(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07,
                        2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02);
  const ep_v_f64 half = z * ep_lit_f64(0.5);
  const ep_v_f64 w = ep_lit_f64(1) - half;
  return w + ep_fma_f64(z * z, c, (ep_lit_f64(1) - w) - half);
}
EP_INLINE ep_v_f64 ep_near_sin_f64(ep_v_f64 x) {
  ep_v_i64 n;
  const ep_v_f64 r = ep_angle_f64(x, &n);
  const ep_v_f64 y = ep_select_f64((n & 1) != 0, ep_cosine_f64(r), ep_sine_f64(r));
  return ep_select_f64(x == ($V){}, x, (ep_v_f64)((ep_v_i64)y ^ ((n & 2) << 62)));
}
EP_INLINE ep_v_f64 ep_near_cos_f64(ep_v_f64 x) {
  ep_v_i64 n;
  const ep_v_f64 r = ep_angle_f64(x, &n);
  const ep_v_f64 y = ep_select_f64((n & 1) != 0, ep_sine_f64(r), ep_cosine_f64(r));
  return (ep_v_f64)((ep_v_i64)y ^ (((n + 1) & 2) << 62));
}
EP_INLINE ep_v_f64 ep_near_tan_f64(ep_v_f64 x) {
  ep_v_i64 n;
  const ep_v_f64 r = ep_angle_f64(x, &n);
  const ep_v_f64 s = ep_sine_f64(r), c = ep_cosine_f64(r);
  const ep_v_i64 odd = (n & 1) != 0;
  return ep_select_f64(x == ($V){}, x, ep_select_f64(odd, -c, s) / ep_select_f64(odd, s, c));
}
// (asin(x) - x) / x as a function of x^2, up to 1/4.
EP_INLINE ep_v_f64 ep_asin_tail_f64(ep_v_f64 z) {
  const ep_v_f64 p = $P(z, 3.47933107596021167570e-05, 7.91534994289814532176e-04, -4.00555345006794114027e-02,
                        2.01212532134862925881e-01, -3.25565818622400915405e-01, 1.66666666666666657415e-01);
  const ep_v_f64 q = $P(z, 7.70381505559019352791e-02, -6.88283971605453293030e-01, 2.02094576023350569471e+00,
                        -2.40339491173441421878e+00, 1.0);
  return z * p / q;
}
// asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)). Outside of [-1, 1] the square root gives NaN.
EP_INLINE ep_v_f64 ep_asin_f64(ep_v_f64 x) {
  const ep_v_f64 a = ep_abs_f64(x);
  const ep_v_i64 small = a <= ep_lit_f64(0.5);
  const ep_v_f64 rest = (ep_lit_f64(1) - a) * ep_lit_f64(0.5);
  const ep_v_f64 z = ep_select_f64(small, x * x, rest);
  const ep_v_f64 arm = ep_select_f64(small, a, ep_sqrt_f64(rest));
  const ep_v_f64 part = ep_fma_f64(ep_asin_tail_f64(z), arm, arm);
  const ep_v_f64 twice = ep_fma_f64(part, ep_lit_f64(2), ep_lit_f64(-6.123233995736766e-17));
  const ep_v_f64 y = ep_select_f64(small, part, ep_lit_f64(1.5707963267948966) - twice);
  return ep_select_f64(x != x, x, ep_sign_of_f64(y, x));
}
EP_INLINE ep_v_f64 ep_acos_f64(ep_v_f64 x) {
  const ep_v_f64 a = ep_abs_f64(x), low = ep_lit_f64(6.123233995736766e-17);
  const ep_v_i64 small = a <= ep_lit_f64(0.5);
  const ep_v_f64 rest = (ep_lit_f64(1) - a) * ep_lit_f64(0.5);
  const ep_v_f64 z = ep_select_f64(small, x * x, rest);
  const ep_v_f64 arm = ep_select_f64(small, x, ep_sqrt_f64(rest));
  const ep_v_f64 part = ep_fma_f64(ep_asin_tail_f64(z), arm, arm);
  const ep_v_f64 middle = ep_lit_f64(1.5707963267948966) - (part - low);
  const ep_v_f64 twice = part + part;
  const ep_v_f64 left = ep_lit_f64(3.141592653589793) - (twice - (low + low));
  const ep_v_f64 large = ep_select_f64(x < ($V){}, left, twice);
  return ep_select_f64(x != x, x, ep_select_f64(small, middle, large));
}
// atan is moved to [-0.42, 0.66] by pi/4 or pi/2.
EP_INLINE ep_v_f64 ep_atan_f64(ep_v_f64 x) {
  const ep_v_f64 a = ep_abs_f64(x), one = ep_lit_f64(1), zero = ($V){};
  const ep_v_i64 far = a > ep_lit_f64(2.41421356237309504880), middle = a > ep_lit_f64(0.66);
  const ep_v_f64 over = ep_select_f64(far, -one, ep_select_f64(middle, a - one, a));
  const ep_v_f64 under = ep_select_f64(far, a, ep_select_f64(middle, a + one, one));
  const ep_v_f64 moved =
      ep_select_f64(far, ep_lit_f64(1.5707963267948966), ep_select_f64(middle, ep_lit_f64(0.7853981633974483), zero));
  const ep_v_f64 low = ep_select_f64(far, ep_lit_f64(6.123233995736766e-17),
                                     ep_select_f64(middle, ep_lit_f64(3.061616997868383e-17), zero));
  const ep_v_f64 y = over / under;
  const ep_v_f64 z = y * y;
  const ep_v_f64 p = $P(z, -8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
                        -1.228866684490136173410e2, -6.485021904942025371773e1);
  const ep_v_f64 q = $P(z, 1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
                        4.853903996359136964868e2, 1.945506571482613964425e2);
  const ep_v_f64 result = moved + (ep_fma_f64(z * p / q, y, low) + y);
  return ep_select_f64(x != x, x, ep_sign_of_f64(result, x));
}
// A quotient near 0; 1 - 2 / (exp(2 x) + 1) beyond. One division serves both.
EP_INLINE ep_v_f64 ep_tanh_f64(ep_v_f64 x) {
  const ep_v_f64 a = ep_clip_f64(ep_abs_f64(x), 0.0, 20.0);
  const ep_v_i64 small = a < ep_lit_f64(0.625);
  const ep_v_f64 z = a * a;
  const ep_v_f64 p = $P(z, -9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3);
  const ep_v_f64 q = $P(z, 1.0, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3);
  const ep_v_f64 over = ep_select_f64(small, a * z * p, ep_lit_f64(-2));
  const ep_v_f64 under = ep_select_f64(small, q, ep_exp_f64(a + a) + ep_lit_f64(1));
  const ep_v_f64 y = ep_select_f64(small, a, ep_lit_f64(1)) + over / under;
  return ep_select_f64(x != x, x, ep_sign_of_f64(y, x));
}
EP_INLINE ep_v_f64 ep_sinh_f64(ep_v_f64 x) {
  const ep_v_f64 a = ep_abs_f64(x);
  const ep_v_i64 small = a < ep_lit_f64(1);
  const ep_v_f64 z = a * a;
  const ep_v_f64 p = $P(z, -7.89474443963537015605e-1, -1.63725857525983828727e2, -1.15614435765005216044e4,
                        -3.51754964808151394800e5);
  const ep_v_f64 q = $P(z, 1.0, -2.77711081420602794433e2, 3.61578279834431989373e4, -2.11052978884890840399e6);
  const ep_v_f64 e = ep_shifted_exp_f64(a, -1);
  const ep_v_f64 over = ep_select_f64(small, a * z * p, ep_lit_f64(-0.25));
  const ep_v_f64 y = ep_select_f64(small, a, e) + over / ep_select_f64(small, q, e);
  return ep_select_f64(x != x, x, ep_sign_of_f64(y, x));
}
EP_INLINE ep_v_f64 ep_cosh_f64(ep_v_f64 x) {
  const ep_v_f64 e = ep_shifted_exp_f64(ep_abs_f64(x), -1);
  return e + ep_lit_f64(0.25) / e;
}
// log1p(x + x^2 / (1 + sqrt(1 + x^2))); where the square may be infinite log(x) + ln 2.
EP_INLINE ep_v_f64 ep_asinh_f64(ep_v_f64 x) {
  const ep_v_f64 a = ep_abs_f64(x);
  const ep_v_i64 large = a > ep_lit_f64(1e100);
  const ep_v_f64 z = a * a;
  const ep_v_f64 t = a + z / (ep_sqrt_f64(z + ep_lit_f64(1)) + ep_lit_f64(1));
  const ep_v_f64 y = ep_log1p_f64(ep_select_f64(large, a, t));
  return ep_sign_of_f64(ep_select_f64(large, y + ep_lit_f64(0.6931471805599453), y), x);
}
// log1p(t + sqrt(2 t + t^2)), t = x - 1; where the square may be infinite log(x) + ln 2. Below 1 the root gives NaN.
EP_INLINE ep_v_f64 ep_acosh_f64(ep_v_f64 x) {
  const ep_v_i64 large = x > ep_lit_f64(1e100);
  const ep_v_f64 t = x - ep_lit_f64(1);
  const ep_v_f64 root = ep_sqrt_f64(ep_select_f64(x < ep_lit_f64(1), t, ep_fma_f64(t, t, t + t)));
  const ep_v_f64 y = ep_log1p_f64(ep_select_f64(large, x, t + root));
  return ep_select_f64(large, y + ep_lit_f64(0.6931471805599453), y);
}
EP_INLINE ep_v_f64 ep_atanh_f64(ep_v_f64 x) {
  const ep_v_f64 a = ep_abs_f64(x);
  const ep_v_f64 y = ep_log1p_f64((a + a) / (ep_lit_f64(1) - a)) * ep_lit_f64(0.5);
  return ep_select_f64(x != x, x, ep_sign_of_f64(y, x));
}
// Cody's quotients: erf(x) / x in x^2 up to 1/2, and erfc(x) exp(x^2) in x beyond.
EP_INLINE ep_v_f64 ep_erf_over_f64(ep_v_f64 z) {
  return $P(z, 1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2,
            3.20937758913846947e3);
}
EP_INLINE ep_v_f64 ep_erf_under_f64(ep_v_f64 z) {
  return $P(z, 1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3);
}
EP_INLINE ep_v_f64 ep_erfc_over_f64(ep_v_f64 t) {
  return $P(t, 2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1,
            2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
            1.23033935479799725e3);
}
EP_INLINE ep_v_f64 ep_erfc_under_f64(ep_v_f64 t) {
  return $P(t, 1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
            3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3);
}
EP_INLINE ep_v_f64 ep_erf_f64(ep_v_f64 x) {
  const ep_v_f64 t = ep_clip_f64(ep_abs_f64(x), 0.0, 6.0);
  const ep_v_i64 small = t < ep_lit_f64(0.5);
  const ep_v_f64 z = t * t;
  const ep_v_f64 over = ep_select_f64(small, ep_erf_over_f64(z), ep_erfc_over_f64(t));
  const ep_v_f64 quotient = over / ep_select_f64(small, ep_erf_under_f64(z), ep_erfc_under_f64(t));
  const ep_v_f64 large = ep_fma_f64(-quotient, ep_exp_f64(-z), ep_lit_f64(1));
  return ep_select_f64(x != x, x, ep_sign_of_f64(ep_select_f64(small, quotient * t, large), x));
}
// Below 1/2 in magnitude 1 - erf(x); beyond, 2 - erfc(-x); else exp(-x^2), of which the square has two parts, times a
// quotient in x up to 4 and one in 1/x^2 beyond.
EP_INLINE ep_v_f64 ep_erfc_f64(ep_v_f64 x) {
  const ep_v_f64 a = ep_clip_f64(ep_abs_f64(x), 0.0, 28.0);
  const ep_v_i64 small = a < ep_lit_f64(0.5);
  const ep_v_f64 t = ep_select_f64(small, ep_lit_f64(0.5), a);
  const ep_v_f64 square = a * a;
  const ep_v_f64 square_low = ep_fma_apart_f64(a, a, -square);
  const ep_v_f64 w = ep_lit_f64(1) / (t * t);
  const ep_v_f64 tail_over = $P(w, 1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1,
                                1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4);
  const ep_v_f64 tail_under = $P(w, 1.0, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1,
                                 6.05183413124413191e-2, 2.33520497626869185e-3);
  const ep_v_i64 far = t > ep_lit_f64(4);
  const ep_v_f64 far_over = ep_fma_f64(ep_lit_f64(0.56418958354775628695), tail_under, -(w * tail_over));
  ep_v_f64 over = ep_select_f64(far, far_over, ep_erfc_over_f64(t));
  ep_v_f64 under = ep_select_f64(far, t * tail_under, ep_erfc_under_f64(t));
  over = ep_select_f64(small, ep_erf_over_f64(square) * x, over);
  under = ep_select_f64(small, ep_erf_under_f64(square), under);
  const ep_v_f64 quotient = over / under;
  const ep_v_f64 bell = ep_exp_f64(-square);
  const ep_v_f64 large = quotient * ep_fma_f64(-bell, square_low, bell);
  const ep_v_f64 beyond = ep_select_f64(x < ($V){}, ep_lit_f64(2) - large, large);
  return ep_select_f64(x != x, x, ep_select_f64(small, ep_lit_f64(1) - quotient, beyond));
}
// x^y = exp(y log x) of a positive x, the logarithm and the product in two parts each.
EP_INLINE ep_v_f64 ep_power_f64(ep_v_f64 x, ep_v_f64 y) {
  ep_v_f64 m, shifted;
  const ep_v_f64 e = ep_parts_f64(x, &m);
  const ep_v_f64 f = m - ep_lit_f64(1);
  const ep_v_f64 sum = f + ep_lit_f64(2);
  const ep_v_f64 inverse = ep_lit_f64(1) / sum;
  const ep_v_f64 s = f * inverse;
  // The rounding error of the quotient is (f - s (f + 2)) / (f + 2); the rounding error of the sum is f - ((f + 2) - 2).
  const ep_v_f64 sum_low = f - (sum - ep_lit_f64(2));
  const ep_v_f64 s_low = ep_fma_f64(-s, sum_low, ep_fma_f64(-s, sum, f)) * inverse;
  const ep_v_f64 z = s * s;
  const ep_v_f64 cube = z * s * ep_log_tail_f64(z);
  // e ln 2 + 2 s, and what the sum lost.
  const ep_v_f64 whole = e * ep_lit_f64(6.93147180369123816490e-01);  // exact
  const ep_v_f64 twice = s + s;
  const ep_v_f64 high = whole + twice;
  const ep_v_f64 back = high - whole;
  const ep_v_f64 lost = (whole - (high - back)) + (twice - back);
  const ep_v_f64 low = ep_fma_f64(e, ep_lit_f64(1.90821492927058770002e-10), lost) + (cube + (s_low + s_low));
  const ep_v_f64 log = high + low;
  const ep_v_f64 log_low = (high - log) + low;
  const ep_v_f64 product = y * log;
  const ep_v_f64 bounded = ep_clip_f64(product, -746.0, 711.0);
  // Beyond the bounds the low part may be of any size.
  const ep_v_f64 product_low = ep_fma_f64(y, log_low, ep_fma_apart_f64(y, log, -product));
  const ep_v_f64 low_part = ep_select_f64(bounded == product, product_low, ($V){});
  const ep_v_f64 r = ep_by_ln2_f64(bounded, &shifted);
  return ep_scaled_f64(ep_expm1_near_f64(r + low_part) + ep_lit_f64(1), shifted);
}
EP_INLINE ep_v_f64 ep_near_pow_f64(ep_v_f64 x, ep_v_f64 y, ep_v_i64* ordinary) {
  const ep_v_f64 a = ep_abs_f64(x);
  *ordinary = (a > ($V){}) & (a < ep_lit_f64(1.7e308)) & (ep_abs_f64(y) < ep_lit_f64(1e100));
  return ep_power_f64(a, y);
}
// x - q y, q = trunc(x / y): exact in one step, since the remainder of a quotient that is one off is a double too.
EP_INLINE ep_v_f64 ep_near_fmod_f64(ep_v_f64 x, ep_v_f64 y, ep_v_i64* ordinary) {
  const ep_v_f64 a = ep_abs_f64(x), divisor = ep_abs_f64(y);
  const ep_v_f64 span = divisor * ep_lit_f64(1125899906842624.0);  // 2^50
  *ordinary = (a < span) & (span < ep_lit_f64(1e307)) & (divisor > ep_lit_f64(1e-290));
  ep_v_f64 rest = ep_fma_f64(-ep_trunc_f64(a / divisor), divisor, a);
  rest = ep_select_f64(rest < ($V){}, rest + divisor, rest);
  rest = ep_select_f64(rest >= divisor, rest - divisor, rest);
  return ep_sign_of_f64(rest, x);
}
)C";

}  // namespace

std::string_view prelude_c_f64() { return kFunctions; }
std::string_view prelude_c_fused_f64() { return kFusedFunctions; }

// sdk/provider/prelude_functions.def without the conditions.
std::string prelude_c_shared() {
  std::string text(embedded_text("functions"));
  for (size_t at = text.find('#'); at != std::string::npos; at = text.find('#', at)) {
    text.erase(at, text.find('\n', at) + 1 - at);
  }
  text = with_suffix(text, "f64");
  for (const auto& [word, by] : {std::pair("EP_FUNCTION", "EP_CALL ep_v_f64"), std::pair("EP_V", "ep_v_f64")}) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
      text.replace(at, std::string_view(word).size(), by);
    }
  }
  return text;
}

}  // namespace tenon::codegen
