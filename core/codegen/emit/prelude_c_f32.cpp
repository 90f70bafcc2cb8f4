// The C prelude's functions with an approximation error, on vectors of float, within the bounds of ep_api/accuracy.def.
// Sources: exp, log and asin from Cephes; erf by N. Juffa. The other polynomials interpolate at Chebyshev nodes.
#include "core/codegen/emit/prelude_c.h"

namespace tenon::codegen {
namespace {

// `$P(x, a, b, c)` is the polynomial (a x + b) x + c; `$tanh_pieces` and `$erf_pieces` are tables of sdk/provider.
constexpr std::string_view kFunctions =
    R"C(EP_INLINE ep_v_f32 ep_p_f32(ep_v_f32 p, ep_v_f32 x, float c) { return ep_fma_f32(p, x, ep_lit_f32(c)); }
#if defined(__AVX512F__)
#if defined(__clang__)
#define EP_LEAST_F32(x, y) __builtin_ia32_minps512(x, y, 4)
#define EP_MOST_F32(x, y) __builtin_ia32_maxps512(x, y, 4)
#define EP_CHOSEN_F32(k, x, y) __builtin_ia32_selectps_512(k, x, y)
#else
#define EP_LEAST_F32(x, y) __builtin_ia32_minps512_mask(x, y, x, (uint16_t)-1, 4)
#define EP_MOST_F32(x, y) __builtin_ia32_maxps512_mask(x, y, x, (uint16_t)-1, 4)
#define EP_CHOSEN_F32(k, x, y) __builtin_ia32_blendmps_512_mask(y, x, k)
#endif
// The instruction gives y if one of them is NaN.
EP_INLINE ep_v_f32 ep_min_f32(ep_v_f32 x, ep_v_f32 y) {
  return EP_CHOSEN_F32(__builtin_ia32_cmpps512_mask(x, x, 7, (uint16_t)-1, 4), EP_LEAST_F32(x, y), x);
}
EP_INLINE ep_v_f32 ep_max_f32(ep_v_f32 x, ep_v_f32 y) {
  return EP_CHOSEN_F32(__builtin_ia32_cmpps512_mask(x, x, 7, (uint16_t)-1, 4), EP_MOST_F32(x, y), x);
}
#else
EP_INLINE ep_v_f32 ep_min_f32(ep_v_f32 x, ep_v_f32 y) { return ep_select_f32((x < y) | (x != x), x, y); }
EP_INLINE ep_v_f32 ep_max_f32(ep_v_f32 x, ep_v_f32 y) { return ep_select_f32((x > y) | (x != x), x, y); }
#endif
// Below and above bounds a bound; NaN stays.
#if defined(__AVX512F__)
EP_INLINE ep_v_f32 ep_clip_f32(ep_v_f32 x, float lo, float hi) {
  return EP_LEAST_F32(ep_splat_f32(hi), EP_MOST_F32(ep_splat_f32(lo), x));
}
#else
EP_INLINE ep_v_f32 ep_clip_f32(ep_v_f32 x, float lo, float hi) {
  const ep_v_f32 least = ep_select_f32(x < ep_splat_f32(lo), ep_splat_f32(lo), x);
  return ep_select_f32(least > ep_splat_f32(hi), ep_splat_f32(hi), least);
}
#endif
// e^r for |r| <= ln 2 / 2, 8e-9 off.
EP_INLINE ep_v_f32 ep_exp_of_rest_f32(ep_v_f32 r) {
  return $P(r, 1.3926250831497612e-3f, 8.3632328836826182e-3f, 4.166655421298415e-2f, 1.6666576666119928e-1f, 0.5f,
            1.0f, 1.0f);
}
// (exp(r) - 1 - r) / r^2, for where nothing may be added to 1.
EP_INLINE ep_v_f32 ep_exp_tail_f32(ep_v_f32 r) {
  return $P(r, 1.9891080463998842e-4f, 1.3933730715792082e-3f, 8.3333108446478626e-3f, 4.1666464197405692e-2f,
            1.6666666681704215e-1f, 5.0000000135387299e-1f);
}
// x - n ln 2 for the whole number n nearest to x / ln 2. Adding 1.5 * 2^23 leaves n in the low bits of `shifted`.
EP_INLINE ep_v_f32 ep_by_ln2_f32(ep_v_f32 x, ep_v_f32* shifted) {
  *shifted = ep_fma_f32(x, ep_lit_f32(1.44269504088896341), ep_lit_f32(12582912.0));
  const ep_v_f32 n = *shifted - ep_lit_f32(12582912.0);
  const ep_v_f32 r = ep_fma_f32(n, ep_lit_f32(-0.693359375), x);
  return ep_fma_f32(n, ep_lit_f32(2.12194440e-4), r);
}
// exp for arguments within [-86, 88].
EP_INLINE ep_v_f32 ep_exp_near_f32(ep_v_f32 x) {
  ep_v_f32 shifted;
  const ep_v_f32 y = ep_exp_of_rest_f32(ep_by_ln2_f32(x, &shifted));
  return (ep_v_f32)((ep_v_i32)y + ((ep_v_i32)shifted << 23));
}
// y * 2^n, where `shifted` is 1.5 * 2^23 + n.
EP_INLINE ep_v_f32 ep_scaled_f32(ep_v_f32 y, ep_v_f32 shifted) {
#if defined(__AVX512F__)
  // One instruction multiplies by 2^n, however far n goes.
  return __builtin_ia32_scalefps512_mask(y, shifted - ep_lit_f32(12582912.0), y, (uint16_t)-1, 4);
#else
  // In two factors, so that a denormal result is rounded once.
  const ep_v_i32 n = (ep_v_i32)shifted - 0x4b400000;
  const ep_v_i32 half = n >> 1;
  return y * (ep_v_f32)((half + 127) << 23) * (ep_v_f32)((n - half + 127) << 23);
#endif
}
EP_INLINE ep_v_f32 ep_exp_f32(ep_v_f32 x) {
  ep_v_f32 shifted;
  const ep_v_f32 y = ep_exp_of_rest_f32(ep_by_ln2_f32(ep_clip_f32(x, -150.0f, 130.0f), &shifted));
  return ep_scaled_f32(y, shifted);
}
EP_INLINE ep_v_f32 ep_exp2_f32(ep_v_f32 x) {
  const ep_v_f32 bounded = ep_clip_f32(x, -152.0f, 130.0f);
  const ep_v_f32 shifted = bounded + ep_lit_f32(12582912.0);
  const ep_v_f32 r = (bounded - (shifted - ep_lit_f32(12582912.0))) * ep_lit_f32(0.69314718055994531);
  return ep_scaled_f32(ep_exp_of_rest_f32(r), shifted);
}
// 2^n (p + 1) - 1. One factor 2 is applied last, so that 2^128 does not overflow too early.
EP_INLINE ep_v_f32 ep_expm1_f32(ep_v_f32 x) {
  ep_v_f32 shifted;
  const ep_v_f32 r = ep_by_ln2_f32(ep_clip_f32(x, -25.0f, 89.0f), &shifted);
  const ep_v_f32 p = ep_fma_f32(ep_exp_tail_f32(r), r * r, r);
  const ep_v_f32 half = (ep_v_f32)(((ep_v_i32)shifted << 23) + (126 << 23));
  const ep_v_f32 y = ep_fma_f32(half, p, half - ep_lit_f32(0.5));
  const ep_v_f32 result = ep_select_f32(shifted == ep_lit_f32(12582912.0), p, y + y);
  return ep_select_f32((x != x) | (x == ($V){}), x, result);
}
// x = m 2^e with sqrt(1/2) <= m < sqrt(2). Gives e, and log(m) in two parts: f = m - 1, and the rest.
EP_INLINE ep_v_f32 ep_log_parts_f32(ep_v_f32 x, ep_v_f32* f, ep_v_f32* rest) {
  const ep_v_i32 denormal = x < ep_lit_f32(1.17549435e-38f);
  const ep_v_f32 normal = ep_select_f32(denormal, x * ep_lit_f32(33554432.0), x);
  const ep_v_i32 shifted = (ep_v_i32)normal + (0x3f800000 - 0x3f3504f3);
  const ep_v_f32 exponent = __builtin_convertvector((shifted >> 23) - 127, ep_v_f32);
  *f = (ep_v_f32)((shifted & 0x007fffff) + 0x3f3504f3) - ep_lit_f32(1);
  const ep_v_f32 z = *f * *f;
  const ep_v_f32 p =
      $P(*f, 7.0376836292e-2f, -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
         -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f);
  *rest = ep_fma_f32(p * *f, z, z * ep_lit_f32(-0.5));
  return exponent - ep_select_f32(denormal, ep_lit_f32(25), ep_lit_f32(0));
}
// NaN below 0 and for NaN, -inf at 0, +inf at +inf.
EP_INLINE ep_v_f32 ep_log_edges_f32(ep_v_f32 x, ep_v_f32 y) {
  y = ep_select_f32(x == ep_highest_f32(), x, y);
  y = ep_select_f32(x == ep_lit_f32(0), ep_lowest_f32(), y);
  y = ep_select_f32(x < ep_lit_f32(0), ep_lit_f32(__builtin_nanf("")), y);
  return ep_select_f32(x != x, x, y);
}
EP_INLINE ep_v_f32 ep_log_f32(ep_v_f32 x) {
  ep_v_f32 f, rest;
  const ep_v_f32 e = ep_log_parts_f32(x, &f, &rest);
  const ep_v_f32 low = ep_fma_f32(e, ep_lit_f32(-2.12194440e-4), rest);
  return ep_log_edges_f32(x, ep_fma_f32(e, ep_lit_f32(0.693359375), low + f));
}
// log2(e) = 1 + 0.4427. The product of the long part is added separately.
EP_INLINE ep_v_f32 ep_log2_f32(ep_v_f32 x) {
  ep_v_f32 f, rest;
  const ep_v_f32 e = ep_log_parts_f32(x, &f, &rest);
  const ep_v_f32 low = (f + rest) * ep_lit_f32(0.44269504088896341);
  return ep_log_edges_f32(x, (low + rest) + (f + e));
}
EP_INLINE ep_v_f32 ep_log10_f32(ep_v_f32 x) {
  ep_v_f32 f, rest;
  const ep_v_f32 e = ep_log_parts_f32(x, &f, &rest);
  const ep_v_f32 log_m = (f + rest) * ep_lit_f32(0.43429448190325183);
  const ep_v_f32 low = ep_fma_f32(e, ep_lit_f32(4.6050390665e-6), log_m);
  return ep_log_edges_f32(x, ep_fma_f32(e, ep_lit_f32(0.301025390625), low));
}
EP_INLINE ep_v_f32 ep_log1p_f32(ep_v_f32 x) {
  // log(u) x / (u - 1) corrects the rounding of u = 1 + x (Kahan; Higham, Accuracy and Stability, 1.14.1).
  const ep_v_f32 one = ep_lit_f32(1);
  const ep_v_f32 u = one + x;
  const ep_v_f32 y = ep_log_f32(u) * (x / (u - one));
  return ep_select_f32((u == one) | (x == ep_highest_f32()), x, y);
}
#if defined(__AVX512F__)
#if defined(__clang__)
#define EP_FROM_16(t, at) __builtin_ia32_permvarsf512(t, at)
#define EP_FROM_32(t, u, at) __builtin_ia32_vpermi2varps512(t, at, u)
#else
#define EP_FROM_16(t, at) __builtin_shuffle(t, at)
#define EP_FROM_32(t, u, at) __builtin_shuffle(t, u, at)
#endif
EP_INLINE ep_v_f32 ep_row_f32(const float* row) {
  ep_v_f32 r;
  __builtin_memcpy(&r, row, sizeof(r));
  return r;
}
// Odd functions in pieces of equal width, each a polynomial around its centre; beyond `last` they are 1. A look-up is
// one instruction. Row i has the coefficients of the i-th power; the first piece is odd.
static const float ep_tanh_pieces_f32[6][32] = {
$tanh_pieces};
static const float ep_erf_pieces_f32[6][16] = {
$erf_pieces};
EP_INLINE ep_v_f32 ep_piece_f32(ep_v_f32 x, float width, float last, ep_v_i32* at) {
  const ep_v_f32 t = EP_LEAST_F32(ep_splat_f32(last), ep_abs_f32(x));
  const ep_v_f32 shifted = ep_fma_f32(t, ep_lit_f32(1 / width), ep_lit_f32(12582912.0));
  *at = (ep_v_i32)shifted;  // a look-up takes its low bits
  return ep_fma_f32(shifted - ep_lit_f32(12582912.0), ep_splat_f32(-width), t);
}
EP_INLINE ep_v_f32 ep_tanh_f32(ep_v_f32 x) {
  ep_v_i32 at;
  const ep_v_f32 u = ep_piece_f32(x, 75.0f / 256, 9.2f, &at);
#define EP_TANH(i) EP_FROM_32(ep_row_f32(ep_tanh_pieces_f32[i]), ep_row_f32(ep_tanh_pieces_f32[i] + 16), at)
  ep_v_f32 p = ep_fma_f32(EP_TANH(5), u, EP_TANH(4));
  p = ep_fma_f32(p, u, EP_TANH(3));
  p = ep_fma_f32(p, u, EP_TANH(2));
  p = ep_fma_f32(p, u, EP_TANH(1));
  return ep_sign_of_f32(ep_fma_f32(p, u, EP_TANH(0)), x);
}
EP_INLINE ep_v_f32 ep_erf_f32(ep_v_f32 x) {
  ep_v_i32 at;
  const ep_v_f32 u = ep_piece_f32(x, 66.0f / 256, 3.99f, &at);
#define EP_ERF(i) EP_FROM_16(ep_row_f32(ep_erf_pieces_f32[i]), at)
  ep_v_f32 p = ep_fma_f32(EP_ERF(5), u, EP_ERF(4));
  p = ep_fma_f32(p, u, EP_ERF(3));
  p = ep_fma_f32(p, u, EP_ERF(2));
  p = ep_fma_f32(p, u, EP_ERF(1));
  return ep_sign_of_f32(ep_fma_f32(p, u, EP_ERF(0)), x);
}
#else
EP_INLINE ep_v_f32 ep_tanh_f32(ep_v_f32 x) {
  const ep_v_f32 a = ep_abs_f32(x);
  const ep_v_f32 m = ep_clip_f32(a, 0.0f, 10.0f);
  const ep_v_f32 z = x * x;
  ep_v_f32 p = ep_lit_f32(-5.70498872745e-3);
  p = ep_p_f32(p, z, 2.06390887954e-2f);
  p = ep_p_f32(p, z, -5.37397155531e-2f);
  p = ep_p_f32(p, z, 1.33314422036e-1f);
  p = ep_p_f32(p, z, -3.33332819422e-1f);
  const ep_v_f32 small = ep_fma_f32(p * z, x, x);
  const ep_v_f32 large = ep_lit_f32(1) - ep_lit_f32(2) / (ep_exp_near_f32(m + m) + ep_lit_f32(1));
  const ep_v_f32 y = ep_sign_of_f32(ep_select_f32(a < ep_lit_f32(0.625), small, large), x);
  return ep_select_f32(x != x, x, y);
}
EP_INLINE ep_v_f32 ep_erf_f32(ep_v_f32 x) {
  const ep_v_f32 a = ep_abs_f32(x);
  const ep_v_f32 t = ep_clip_f32(a, 0.0f, 4.0f);
  const ep_v_f32 s = t * t;
  const ep_v_f32 u = ep_fma_f32(ep_lit_f32(-3.88396438e-3), t, ep_lit_f32(2.42546219e-2));
  ep_v_f32 p = ep_fma_f32(ep_lit_f32(-1.72853470e-5), t, ep_lit_f32(3.83197126e-4));
  p = ep_fma_f32(p, s, u);
  p = ep_p_f32(p, t, -1.06777877e-1f);
  p = ep_p_f32(p, t, -6.34846687e-1f);
  p = ep_p_f32(p, t, -1.28717512e-1f);
  p = ep_fma_f32(p, t, -t);
  const ep_v_f32 large = ep_lit_f32(1) - ep_exp_near_f32(p);
  ep_v_f32 q = ep_lit_f32(-5.96761703e-4);
  q = ep_p_f32(q, s, 4.99119423e-3f);
  q = ep_p_f32(q, s, -2.67681349e-2f);
  q = ep_p_f32(q, s, 1.12819925e-1f);
  q = ep_p_f32(q, s, -3.76125336e-1f);
  q = ep_p_f32(q, s, 1.28379166e-1f);
  const ep_v_f32 small = ep_fma_f32(q, t, t);
  const ep_v_f32 y = ep_sign_of_f32(ep_select_f32(t > ep_lit_f32(0.921875), large, small), x);
  return ep_select_f32(x != x, x, y);
}
#endif
// asin for |x| <= 1/2.
EP_INLINE ep_v_f32 ep_asin_near_f32(ep_v_f32 x) {
  const ep_v_f32 z = x * x;
  const ep_v_f32 p = $P(z, 3.369084720283012e-2f, 1.7149238357677253e-2f, 3.1100662735494568e-2f,
                        4.4599401528512184e-2f, 7.5000945434974235e-2f, 1.6666666337430907e-1f);
  return ep_fma_f32(p * z, x, x);
}
// asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)). Outside of [-1, 1] the square root gives NaN.
EP_INLINE ep_v_f32 ep_asin_f32(ep_v_f32 x) {
  const ep_v_f32 a = ep_abs_f32(x);
  const ep_v_i32 small = a <= ep_lit_f32(0.5);
  const ep_v_f32 root = ep_sqrt_f32((ep_lit_f32(1) - a) * ep_lit_f32(0.5));
  const ep_v_f32 part = ep_asin_near_f32(ep_select_f32(small, a, root));
  const ep_v_f32 y = ep_select_f32(small, part, ep_lit_f32(1.57079632679489662) - (part + part));
  return ep_select_f32(x != x, x, ep_sign_of_f32(y, x));
}
EP_INLINE ep_v_f32 ep_acos_f32(ep_v_f32 x) {
  const ep_v_f32 a = ep_abs_f32(x);
  const ep_v_i32 small = a <= ep_lit_f32(0.5);
  const ep_v_f32 root = ep_sqrt_f32((ep_lit_f32(1) - a) * ep_lit_f32(0.5));
  const ep_v_f32 part = ep_asin_near_f32(ep_select_f32(small, x, root));
  const ep_v_f32 twice = part + part;
  const ep_v_f32 large = ep_select_f32(x < ep_lit_f32(0), ep_lit_f32(3.14159265358979324) - twice, twice);
  return ep_select_f32(x != x, x, ep_select_f32(small, ep_lit_f32(1.57079632679489662) - part, large));
}
// atan(x) = pi/2 - atan(1 / x).
EP_INLINE ep_v_f32 ep_atan_f32(ep_v_f32 x) {
  const ep_v_f32 a = ep_abs_f32(x);
  const ep_v_i32 far = a > ep_lit_f32(1);
  const ep_v_f32 t = ep_select_f32(far, ep_lit_f32(1) / a, a);
  const ep_v_f32 z = t * t;
  const ep_v_f32 p = $P(z, -2.3869973167241132e-3f, 1.3507771427020535e-2f, -3.5871538982043358e-2f,
                        6.2501694447495632e-2f, -8.6568804301545215e-2f, 1.1033764115313455e-1f,
                        -1.4278568748210602e-1f, 1.999973932983558e-1f, -3.333333173306352e-1f);
  const ep_v_f32 y = ep_fma_f32(p * z, t, t);
  return ep_sign_of_f32(ep_select_f32(far, ep_lit_f32(1.57079632679489662) - y, y), x);
}
EP_INLINE ep_v_f64 ep_wide_f32(ep_v_f32 x) { return __builtin_convertvector(x, ep_v_f64); }
EP_INLINE ep_v_f32 ep_narrow_f32(ep_v_f64 x) { return __builtin_convertvector(x, ep_v_f32); }
)C";

// These need a fused multiply-add and call functions of double.
constexpr std::string_view kFusedFunctions =
    R"C(// x - n pi/2, at most pi/4 in magnitude, and n in the low bits of `quadrant`. The first step is exact up to 2^17,
// and the parts of pi/2 have one sign, so that -0 stays -0.
EP_INLINE ep_v_f32 ep_angle_f32(ep_v_f32 x, ep_v_i32* quadrant) {
  const ep_v_f32 shifted = ep_fma_f32(x, ep_lit_f32(0.636619772367581343), ep_lit_f32(12582912.0));
  const ep_v_f32 n = shifted - ep_lit_f32(12582912.0);
  *quadrant = (ep_v_i32)shifted;
  ep_v_f32 r = ep_fma_f32(n, ep_lit_f32(-0x1.921fb40000000p+0f), x);
  r = ep_fma_f32(n, ep_lit_f32(-0x1.4442d00000000p-24f), r);
  return ep_fma_f32(n, ep_lit_f32(-0x1.8469880000000p-48f), r);
}
EP_INLINE ep_v_f32 ep_sine_f32(ep_v_f32 r) {
  const ep_v_f32 z = r * r;
  const ep_v_f32 s = $P(z, -1.9587639098737619e-4f, 8.33274710466453e-3f, -1.6666664656312209e-1f);
  return ep_sign_of_f32(ep_fma_f32(s * z, r, r), r);  // keeps the sign of a zero
}
EP_INLINE ep_v_f32 ep_cosine_f32(ep_v_f32 r) {
  const ep_v_f32 z = r * r;
  const ep_v_f32 c = $P(z, 2.4547689772460029e-5f, -1.3888301867562369e-3f, 4.1666664653488793e-2f);
  return ep_fma_f32(c * z, z, ep_fma_f32(z, ep_lit_f32(-0.5), ep_lit_f32(1)));
}
EP_INLINE ep_v_f32 ep_near_sin_f32(ep_v_f32 x) {
  ep_v_i32 n;
  const ep_v_f32 r = ep_angle_f32(x, &n);
  const ep_v_f32 y = ep_select_f32((n & 1) != 0, ep_cosine_f32(r), ep_sine_f32(r));
  return (ep_v_f32)((ep_v_i32)y ^ ((n & 2) << 30));
}
EP_INLINE ep_v_f32 ep_near_cos_f32(ep_v_f32 x) {
  ep_v_i32 n;
  const ep_v_f32 r = ep_angle_f32(x, &n);
  const ep_v_f32 y = ep_select_f32((n & 1) != 0, ep_sine_f32(r), ep_cosine_f32(r));
  return (ep_v_f32)((ep_v_i32)y ^ (((n + 1) & 2) << 30));
}
EP_INLINE ep_v_f32 ep_near_tan_f32(ep_v_f32 x) {
  ep_v_i32 n;
  const ep_v_f32 r = ep_angle_f32(x, &n);
  const ep_v_f32 s = ep_sine_f32(r), c = ep_cosine_f32(r);
  const ep_v_i32 odd = (n & 1) != 0;
  return ep_select_f32(odd, -c, s) / ep_select_f32(odd, s, c);
}
// The logarithm of a positive, finite number that is not denormal in f64, 2^-36 off.
EP_INLINE ep_v_f64 ep_short_log_f32(ep_v_f64 x) {
  const ep_v_i64 shifted = (ep_v_i64)x + (0x3ff0000000000000 - 0x3fe6a09e667f3bcd);
  const ep_v_f64 e = (ep_v_f64)((ep_v_i64)((ep_v_u64)shifted >> 52) + 0x4338000000000000) - 6755399441056767.0;
  const ep_v_f64 m = (ep_v_f64)((shifted & 0x000fffffffffffff) + 0x3fe6a09e667f3bcd);
  const ep_v_f64 s = (m - 1.0) / (m + 1.0);
  const ep_v_f64 z = s * s;
  const ep_v_f64 p = $Q(z, 0.153846153846153846, 0.181818181818181818, 0.222222222222222222, 0.285714285714285714, 0.4,
                        0.666666666666666667, 2.0);
  return ep_fma_f64(e, ep_lit_f64(0.693147180559945309), s * p);
}
// e^x for |x| <= 700, 2^-36 off.
EP_INLINE ep_v_f64 ep_short_exp_f32(ep_v_f64 x) {
  const ep_v_f64 shifted = ep_fma_f64(x, ep_lit_f64(1.44269504088896341), ep_lit_f64(6755399441055744.0));
  const ep_v_f64 r = ep_fma_f64(shifted - ep_lit_f64(6755399441055744.0), ep_lit_f64(-0.693147180559945309), x);
  const ep_v_f64 p = $Q(r, 2.48015873015873016e-5, 1.98412698412698413e-4, 1.38888888888888889e-3,
                        8.33333333333333333e-3, 4.16666666666666667e-2, 1.66666666666666667e-1, 0.5, 1.0, 1.0);
  return p * (ep_v_f64)(((ep_v_i64)shifted + 1023) << 52);
}
EP_INLINE ep_v_f32 ep_near_pow_f32(ep_v_f32 x, ep_v_f32 y, ep_v_i32* ordinary) {
  const ep_v_f32 a = ep_abs_f32(x);
  *ordinary = (a > ($V){}) & (a < ep_highest_f32()) & (ep_abs_f32(y) < ep_lit_f32(1e9));
  const ep_v_f64 product = ep_wide_f32(y) * ep_short_log_f32(ep_wide_f32(a));
  const ep_v_f64 least = ep_select_f64(product < ep_lit_f64(-200), ep_lit_f64(-200), product);
  return ep_narrow_f32(ep_short_exp_f32(ep_select_f64(least > ep_lit_f64(200), ep_lit_f64(200), least)));
}
// x - trunc(x / y) y, where double holds the product: its quotient is at most one off.
EP_INLINE ep_v_f32 ep_near_fmod_f32(ep_v_f32 x, ep_v_f32 y, ep_v_i32* ordinary) {
  const ep_v_f32 a = ep_abs_f32(x), span = ep_abs_f32(y) * ep_lit_f32(134217728.0);  // 2^27
  // Where the span is infinite or y is denormal, the lanes are left to the C library.
  *ordinary = (a < span) & (span < ep_lit_f32(3e38)) & (span > ep_lit_f32(1e-28));
  const ep_v_f64 w = ep_wide_f32(a), divisor = ep_wide_f32(ep_abs_f32(y));
  ep_v_f64 rest = ep_fma_f64(-ep_trunc_f64(w / divisor), divisor, w);
  rest = ep_select_f64(rest < ep_lit_f64(0), rest + divisor, rest);
  return ep_sign_of_f32(ep_narrow_f32(ep_select_f64(rest >= divisor, rest - divisor, rest)), x);
}
)C";

}  // namespace

std::string prelude_c_f32() {
  std::string text(kFunctions);
  for (const std::string_view name : {"tanh_pieces", "erf_pieces"}) {
    text.replace(text.find('$' + std::string(name)), 1 + name.size(), embedded_text(name));
  }
  return text;
}
std::string_view prelude_c_fused_f32() { return kFusedFunctions; }

}  // namespace tenon::codegen
