#include "core/codegen/emit/prelude_c.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

constexpr std::string_view kTypes = R"C(typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
#ifndef INT64_C
#define INT64_C(x) x##ll
#endif
#define EP_LANES 16
#define EP_INLINE static inline __attribute__((always_inline, unused))
// Functions that go lane by lane are calls: inlined they take compilers long.
#define EP_CALL static __attribute__((noinline, unused))
#define EP_EACH for (int i = 0; i < EP_LANES; ++i)
// For operations with one instruction for all lanes: clang only finds it if the loop over the lanes is unrolled.
#if defined(__clang__)
#define EP_ALL_LANES _Pragma("clang loop unroll(full)") EP_EACH
#else
#define EP_ALL_LANES EP_EACH
#endif
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__aarch64__)
#define EP_FUSES 1
#endif
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define EP_SHUFFLES 1
#endif
#endif
typedef int8_t ep_v_i8 __attribute__((vector_size(EP_LANES)));
typedef int16_t ep_v_i16 __attribute__((vector_size(2 * EP_LANES)));
typedef int32_t ep_v_i32 __attribute__((vector_size(4 * EP_LANES)));
typedef int64_t ep_v_i64 __attribute__((vector_size(8 * EP_LANES)));
typedef uint8_t ep_v_u8 __attribute__((vector_size(EP_LANES)));
typedef uint16_t ep_v_u16 __attribute__((vector_size(2 * EP_LANES)));
typedef uint32_t ep_v_u32 __attribute__((vector_size(4 * EP_LANES)));
typedef uint64_t ep_v_u64 __attribute__((vector_size(8 * EP_LANES)));
typedef float ep_v_f32 __attribute__((vector_size(4 * EP_LANES)));
typedef double ep_v_f64 __attribute__((vector_size(8 * EP_LANES)));
// From 8 bits to 32 and back: gcc takes the lanes apart.
#if defined(__AVX512F__) && !defined(__clang__)
typedef char ep_v_char __attribute__((vector_size(EP_LANES)));
#define EP_WIDE_U8(x, type) __builtin_ia32_pmovzxbd512_mask((ep_v_char)(x), (ep_v_i32){}, (uint16_t)-1)
#define EP_WIDE_I8(x, type) __builtin_ia32_pmovsxbd512_mask((ep_v_char)(x), (ep_v_i32){}, (uint16_t)-1)
#define EP_NARROW_8(x, type) __builtin_ia32_pmovdb512_mask((ep_v_i32)(x), (ep_v_char){}, (uint16_t)-1)
#else
#define EP_WIDE_U8(x, type) __builtin_convertvector(x, type)
#define EP_WIDE_I8(x, type) __builtin_convertvector(x, type)
#define EP_NARROW_8(x, type) __builtin_convertvector(x, type)
#endif
static const ep_v_i32 ep_numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
// True in the first n lanes.
EP_INLINE ep_v_i32 ep_first(int64_t n) { return ep_numbers < (int32_t)n; }
#if defined(__AVX512DQ__)
EP_INLINE int ep_all(ep_v_i32 m) { return __builtin_ia32_cvtd2mask512(m) == 0xffff; }
#else
EP_INLINE int ep_all(ep_v_i32 m) {
  int32_t r = -1;
  EP_ALL_LANES r &= m[i];
  return r != 0;
}
#endif
#if defined(__clang__)
#define EP_STORE_FAR(p, r) __builtin_nontemporal_store(r, (__typeof__(r)*)(p));
#elif defined(__AVX512F__)
typedef long long ep_far __attribute__((vector_size(64)));
#define EP_STORE_FAR(p, r)                                                             \
  if (sizeof(r) % 64 == 0) {                                                           \
    ep_far far_parts[(sizeof(r) + 63) / 64];                                           \
    __builtin_memcpy(far_parts, &(r), sizeof(r));                                      \
    for (unsigned long k = 0; k < sizeof(r) / 64; ++k) {                               \
      __builtin_ia32_movntdq512((ep_far*)(p) + k, far_parts[k]);                       \
    }                                                                                  \
  } else {                                                                             \
    __builtin_memcpy(p, &(r), sizeof(r));                                              \
  }
#elif defined(__AVX__)
typedef long long ep_far __attribute__((vector_size(32)));
#define EP_STORE_FAR(p, r)                                                             \
  if (sizeof(r) % 32 == 0) {                                                           \
    ep_far far_parts[(sizeof(r) + 31) / 32];                                           \
    __builtin_memcpy(far_parts, &(r), sizeof(r));                                      \
    for (unsigned long k = 0; k < sizeof(r) / 32; ++k) {                               \
      __builtin_ia32_movntdq256((ep_far*)(p) + k, far_parts[k]);                       \
    }                                                                                  \
  } else {                                                                             \
    __builtin_memcpy(p, &(r), sizeof(r));                                              \
  }
#else
#define EP_STORE_FAR(p, r) __builtin_memcpy(p, &(r), sizeof(r));
#endif
#if defined(__x86_64__)
#define EP_FENCE __builtin_ia32_sfence();
#else
#define EP_FENCE
#endif
EP_INLINE int64_t ep_floor_quotient(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
EP_INLINE int64_t ep_floor_rest(int64_t a, int64_t b) { return a - b * ep_floor_quotient(a, b); }
EP_INLINE int64_t ep_least(int64_t a, int64_t b) { return a < b ? a : b; }
EP_INLINE int64_t ep_most(int64_t a, int64_t b) { return a < b ? b : a; }
#if defined(__clang__)
#define EP_FUSED _Pragma("clang fp contract(fast)")
#endif
)C";

// Transposes 16 by 16 numbers in registers: exchanges pairs of numbers, then of pairs, of fours and of eights.
constexpr std::string_view kTurn = R"C(#if defined(EP_SHUFFLES)
#define EP_UNROLL _Pragma("GCC unroll 16")
#define EP_PAIR(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
EP_INLINE void ep_turn_tile(const int32_t* from, int64_t step, int32_t* to, int64_t width) {
  ep_v_i32 a[16], b[16];
  EP_UNROLL
  for (int i = 0; i < 16; ++i) __builtin_memcpy(&a[i], from + i * step, sizeof(a[i]));
  EP_UNROLL
  for (int i = 0; i < 16; i += 2) {
    b[i] = EP_PAIR(a[i], a[i + 1], 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
    b[i + 1] = EP_PAIR(a[i], a[i + 1], 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  }
  EP_UNROLL
  for (int i = 0; i < 16; i += 4) {
    EP_UNROLL
    for (int k = 0; k < 2; ++k) {
      a[i + 2 * k] = EP_PAIR(b[i + k], b[i + k + 2], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
      a[i + 2 * k + 1] = EP_PAIR(b[i + k], b[i + k + 2], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
  }
  // a[i + j] has elements j, j + 4, j + 8 and j + 12 of lines i to i + 3.
  EP_UNROLL
  for (int i = 0; i < 16; i += 8) {
    EP_UNROLL
    for (int j = 0; j < 4; ++j) {
      b[i + j] = EP_PAIR(a[i + j], a[i + j + 4], 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
      b[i + j + 4] = EP_PAIR(a[i + j], a[i + j + 4], 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
    }
  }
  EP_UNROLL
  for (int j = 0; j < 8; ++j) {
    a[j] = EP_PAIR(b[j], b[j + 8], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    a[j + 8] = EP_PAIR(b[j], b[j + 8], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  }
  EP_UNROLL
  for (int j = 0; j < 16; ++j) __builtin_memcpy(to + j * width, &a[j], sizeof(a[j]));
}
#else
EP_INLINE void ep_turn_tile(const int32_t* from, int64_t step, int32_t* to, int64_t width) {
  for (int j = 0; j < 16; ++j) {
    for (int i = 0; i < 16; ++i) to[j * width + i] = from[i * step + j];
  }
}
#endif
EP_CALL void ep_turn(const void* src, int64_t step, void* dst, int64_t width, int64_t lines, int64_t count) {
  const int32_t* const from = (const int32_t*)src;
  int32_t* const to = (int32_t*)dst;
  const int64_t whole_lines = lines & ~(int64_t)15, whole = count & ~(int64_t)15;
  for (int64_t i = 0; i < whole_lines; i += 16) {
    for (int64_t j = 0; j < whole; j += 16) ep_turn_tile(from + i * step + j, step, to + j * width + i, width);
  }
  for (int64_t i = 0; i < lines; ++i) {
    for (int64_t j = i < whole_lines ? whole : 0; j < count; ++j) to[j * width + i] = from[i * step + j];
  }
}
)C";

// The functions that every dtype has.
constexpr std::string_view kAny =
    R"C(EP_INLINE $V ep_splat_$s($S x) { return ($V){x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}; }
EP_INLINE $V ep_select_$s($M m, $V x, $V y) { return ($V)((m & ($M)x) | (~m & ($M)y)); }
EP_INLINE $M ep_same_$s($M m) { return m; }
EP_INLINE $M ep_land_$s($M x, $M y) { return x & y; }
EP_INLINE $M ep_lor_$s($M x, $M y) { return x | y; }
EP_INLINE $M ep_lxor_$s($M x, $M y) { return x ^ y; }
EP_INLINE $M ep_lnot_$s($M x) { return ~x; }
)C";

constexpr std::string_view kNumeric = R"C(#define ep_lit_$s(x) ep_splat_$s(($S)(x))
EP_INLINE $M ep_eq_$s($V x, $V y) { return x == y; }
EP_INLINE $M ep_ne_$s($V x, $V y) { return x != y; }
EP_INLINE $M ep_lt_$s($V x, $V y) { return x < y; }
EP_INLINE $M ep_le_$s($V x, $V y) { return x <= y; }
EP_INLINE $M ep_gt_$s($V x, $V y) { return x > y; }
EP_INLINE $M ep_ge_$s($V x, $V y) { return x >= y; }
EP_INLINE $M ep_truth_$s($V x) { return x != ($V){}; }
)C";

// Lane i gets the value of lane i ^ by.
constexpr std::string_view kShifts = R"C(#if defined(EP_SHUFFLES)
#define EP_SHIFTED_$s(x, ...) __builtin_shufflevector(x, x, __VA_ARGS__)
EP_INLINE $V ep_shift_8_$s($V x) { return EP_SHIFTED_$s(x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7); }
EP_INLINE $V ep_shift_4_$s($V x) { return EP_SHIFTED_$s(x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11); }
EP_INLINE $V ep_shift_2_$s($V x) { return EP_SHIFTED_$s(x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13); }
EP_INLINE $V ep_shift_1_$s($V x) { return EP_SHIFTED_$s(x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14); }
#else
EP_INLINE $V ep_shifted_$s($V x, int by) {
  $V r;
  EP_EACH r[i] = x[i ^ by];
  return r;
}
EP_INLINE $V ep_shift_8_$s($V x) { return ep_shifted_$s(x, 8); }
EP_INLINE $V ep_shift_4_$s($V x) { return ep_shifted_$s(x, 4); }
EP_INLINE $V ep_shift_2_$s($V x) { return ep_shifted_$s(x, 2); }
EP_INLINE $V ep_shift_1_$s($V x) { return ep_shifted_$s(x, 1); }
#endif
)C";

constexpr std::string_view kBool = R"C(#define ep_lit_$s(x) ep_splat_$s((x) ? -1 : 0)
EP_INLINE $M ep_eq_$s($V x, $V y) { return ~(x ^ y); }
EP_INLINE $M ep_ne_$s($V x, $V y) { return x ^ y; }
EP_INLINE $M ep_truth_$s($V x) { return x; }
EP_INLINE $V ep_bit_and_$s($V x, $V y) { return x & y; }
EP_INLINE $V ep_bit_or_$s($V x, $V y) { return x | y; }
EP_INLINE $V ep_bit_xor_$s($V x, $V y) { return x ^ y; }
EP_INLINE $V ep_bit_not_$s($V x) { return ~x; }
)C";

constexpr std::string_view kFloat = R"C(EP_INLINE $V ep_add_$s($V x, $V y) { return x + y; }
EP_INLINE $V ep_sub_$s($V x, $V y) { return x - y; }
EP_INLINE $V ep_mul_$s($V x, $V y) { return x * y; }
EP_INLINE $V ep_div_$s($V x, $V y) { return x / y; }
EP_INLINE $V ep_neg_$s($V x) { return -x; }
EP_INLINE $V ep_lowest_$s(void) { return ep_lit_$s(-__builtin_inff()); }
EP_INLINE $V ep_highest_$s(void) { return ep_lit_$s(__builtin_inff()); }
EP_INLINE $M ep_isnan_$s($V x) { return x != x; }
EP_INLINE $V ep_abs_$s($V x) { return ($V)(($M)x & ~($M)ep_lit_$s(-0.0)); }
EP_INLINE $V ep_sign_of_$s($V x, $V y) {
  const $M sign = ($M)ep_lit_$s(-0.0);
  return ($V)((($M)x & ~sign) | (($M)y & sign));
}
EP_INLINE $M ep_isinf_$s($V x) { return ep_abs_$s(x) == ep_highest_$s(); }
EP_INLINE int ep_all_$s($M m) { return ep_all(__builtin_convertvector(m, ep_v_i32)); }
EP_INLINE $V ep_sqrt_$s($V x) {
  $V r;
  EP_ALL_LANES r[i] = __builtin_sqrt$f(x[i]);
  return r;
}
#if defined(__clang__)
EP_INLINE $V ep_fma_$s($V x, $V y, $V z) {
  EP_FUSED
  return x * y + z;
}
#elif defined(__FMA__) || defined(__ARM_FEATURE_FMA)
EP_INLINE $V ep_fma_$s($V x, $V y, $V z) {
  $V r;
  EP_EACH r[i] = __builtin_fma$f(x[i], y[i], z[i]);
  return r;
}
#else
EP_INLINE $V ep_fma_$s($V x, $V y, $V z) { return x * y + z; }
#endif
// Adding and subtracting a great number leaves the nearest whole one, half to even; greater numbers are whole.
EP_INLINE $V ep_rint_$s($V x) {
  const $V great = ep_sign_of_$s(ep_lit_$s($G), x);
  const $V r = ep_sign_of_$s((x + great) - great, x);
  return ep_select_$s(ep_abs_$s(x) < ep_lit_$s($G), r, x);
}
EP_INLINE $V ep_floor_$s($V x) {
  const $V r = ep_rint_$s(x);
  return ep_sign_of_$s(ep_select_$s(r > x, r - ep_lit_$s(1), r), x);
}
EP_INLINE $V ep_ceil_$s($V x) {
  const $V r = ep_rint_$s(x);
  return ep_sign_of_$s(ep_select_$s(r < x, r + ep_lit_$s(1), r), x);
}
EP_INLINE $V ep_trunc_$s($V x) { return ep_sign_of_$s(ep_floor_$s(ep_abs_$s(x)), x); }
)C";

// A function of C's library, called lane by lane.
constexpr std::string_view kLibraryText = R"C($S $n$f($S);
EP_CALL $V ep_$n_$s($V x) {
  $V r;
  EP_EACH r[i] = $n$f(x[i]);
  return r;
}
)C";
constexpr std::string_view kPairsText = R"C($S pow$f($S, $S);
EP_CALL $V ep_pow_$s($V x, $V y) {
  $V r;
  EP_EACH r[i] = pow$f(x[i], y[i]);
  return r;
}
$S fmod$f($S, $S);
EP_CALL $V ep_fmod_$s($V x, $V y) {
  $V r;
  EP_EACH r[i] = fmod$f(x[i], y[i]);
  return r;
}
)C";

// A function with a formula for small arguments, ep_near_$n. The library computes the lanes with greater arguments.
constexpr std::string_view kNearText = R"C($S $n$f($S);
EP_CALL $V ep_far_$n_$s($V x, $V y, $M near) {
  EP_EACH if (!near[i]) y[i] = $n$f(x[i]);
  return y;
}
EP_INLINE $V ep_$n_$s($V x) {
  const $V y = ep_near_$n_$s(x);
  const $M near = ep_abs_$s(x) < ep_lit_$s($A);
  return ep_all_$s(near) ? y : ep_far_$n_$s(x, y, near);
}
)C";
constexpr std::string_view kFusedPairs = R"C($S pow$f($S, $S);
EP_CALL $V ep_far_pow_$s($V x, $V y, $V r, $M ordinary) {
  EP_EACH if (!ordinary[i]) r[i] = pow$f(x[i], y[i]);
  return r;
}
// A negative x with a whole y has the sign of (-1)^y; with another y it has no power.
EP_CALL $V ep_pow_$s($V x, $V y) {
  $M ordinary;
  $V r = ep_near_pow_$s(x, y, &ordinary);
  const $V half = y * ep_lit_$s(0.5);
  $V negative = ep_select_$s(ep_trunc_$s(half) == half, r, -r);
  negative = ep_select_$s(ep_trunc_$s(y) == y, negative, ep_lit_$s(__builtin_nan("")));
  r = ep_select_$s(x < ($V){}, negative, r);
  return ep_all_$s(ordinary) ? r : ep_far_pow_$s(x, y, r, ordinary);
}
$S fmod$f($S, $S);
EP_CALL $V ep_far_fmod_$s($V x, $V y, $V r, $M ordinary) {
  EP_EACH if (!ordinary[i]) r[i] = fmod$f(x[i], y[i]);
  return r;
}
EP_CALL $V ep_fmod_$s($V x, $V y) {
  $M ordinary;
  const $V r = ep_near_fmod_$s(x, y, &ordinary);
  return ep_all_$s(ordinary) ? r : ep_far_fmod_$s(x, y, r, ordinary);
}
)C";

// A function of f32 that is computed in f64.
constexpr std::string_view kByDoubleText =
    R"C(EP_CALL ep_v_f32 ep_$n_f32(ep_v_f32 x) { return ep_narrow_f32(ep_$n_f64(ep_wide_f32(x))); }
)C";

constexpr std::string_view kDivisions = R"C(EP_CALL $V ep_mod_$s($V x, $V y) {
  const $V rest = ep_fmod_$s(x, y);
  const $V moved = ep_select_$s((rest < ($V){}) ^ (y < ($V){}), rest + y, rest);
  return ep_select_$s(rest == ($V){}, ep_sign_of_$s(($V){}, y), moved);
}
// As in Python: subtracts the remainder before it divides, so that rounding of x / y cannot step over an integer.
EP_CALL $V ep_floor_div_$s($V x, $V y) {
  const $V rest = ep_fmod_$s(x, y);
  $V q = (x - rest) / y;
  q = ep_select_$s((rest != ($V){}) & ((rest < ($V){}) ^ (y < ($V){})), q - ep_lit_$s(1), q);
  $V whole = ep_floor_$s(q);
  whole = ep_select_$s(q - whole > ep_lit_$s(0.5), whole + ep_lit_$s(1), whole);
  whole = ep_select_$s(q == ($V){}, ep_sign_of_$s(($V){}, x / y), whole);
  return ep_select_$s(y == ($V){}, x / y, whole);
}
)C";

constexpr std::string_view kInteger = R"C(EP_INLINE $V ep_wrap_$s($V x) { return $X; }
EP_INLINE $V ep_add_$s($V x, $V y) { return ep_wrap_$s(($V)(($UV)x + ($UV)y)); }
EP_INLINE $V ep_sub_$s($V x, $V y) { return ep_wrap_$s(($V)(($UV)x - ($UV)y)); }
EP_INLINE $V ep_mul_$s($V x, $V y) { return ep_wrap_$s(($V)(($UV)x * ($UV)y)); }
EP_INLINE $V ep_neg_$s($V x) { return ep_wrap_$s(($V)(-($UV)x)); }
EP_INLINE $V ep_abs_$s($V x) { return ep_select_$s(x < ($V){}, ep_neg_$s(x), x); }
EP_INLINE $V ep_min_$s($V x, $V y) { return ep_select_$s(x < y, x, y); }
EP_INLINE $V ep_max_$s($V x, $V y) { return ep_select_$s(x > y, x, y); }
EP_INLINE $V ep_lowest_$s(void) { return ep_lit_$s($L); }
EP_INLINE $V ep_highest_$s(void) { return ep_lit_$s($H); }
EP_INLINE $V ep_fma_$s($V x, $V y, $V z) { return ep_add_$s(ep_mul_$s(x, y), z); }
EP_INLINE $M ep_isnan_$s($V x) { return ($M)(x ^ x); }
EP_INLINE $M ep_isinf_$s($V x) { return ($M)(x ^ x); }
EP_INLINE $V ep_floor_$s($V x) { return x; }
EP_INLINE $V ep_ceil_$s($V x) { return x; }
EP_INLINE $V ep_trunc_$s($V x) { return x; }
EP_INLINE $V ep_rint_$s($V x) { return x; }
EP_INLINE $V ep_bit_and_$s($V x, $V y) { return x & y; }
EP_INLINE $V ep_bit_or_$s($V x, $V y) { return x | y; }
EP_INLINE $V ep_bit_xor_$s($V x, $V y) { return x ^ y; }
EP_INLINE $V ep_bit_not_$s($V x) { return ep_wrap_$s(~x); }
EP_CALL $V ep_shl_$s($V x, $V y) {
  $V r;
  EP_EACH r[i] = y[i] < 0 || y[i] >= $W ? 0 : ($S)(($U)x[i] << y[i]);
  return ep_wrap_$s(r);
}
EP_CALL $V ep_shr_$s($V x, $V y) {
  $V r;
  EP_EACH r[i] = y[i] < 0 || y[i] >= $W ? (x[i] < 0 ? ($S)-1 : 0) : x[i] >> y[i];
  return r;
}
// A quotient by 0 is 0, and that of the least integer and -1 wraps; the processor's division would trap.
EP_INLINE int ep_turns_$s($S y) { return $N && y == ($S)-1; }
EP_CALL $V ep_div_$s($V x, $V y) {
  $V r;
  EP_EACH r[i] = y[i] == 0 ? 0 : ep_turns_$s(y[i]) ? ($S)(($U)0 - ($U)x[i]) : x[i] / y[i];
  return ep_wrap_$s(r);
}
EP_CALL $V ep_fmod_$s($V x, $V y) {
  $V r;
  EP_EACH r[i] = y[i] == 0 || ep_turns_$s(y[i]) ? 0 : x[i] % y[i];
  return r;
}
EP_CALL $V ep_mod_$s($V x, $V y) {
  const $V r = ep_fmod_$s(x, y);
  return ep_select_$s((r != ($V){}) & ((r < ($V){}) ^ (y < ($V){})), r + y, r);
}
EP_CALL $V ep_floor_div_$s($V x, $V y) {
  const $V quotient = ep_div_$s(x, y), rest = ep_fmod_$s(x, y);
  $V r;
  EP_EACH r[i] = quotient[i] - (rest[i] != 0 && (x[i] < 0) != (y[i] < 0));
  return r;
}
EP_CALL $V ep_pow_$s($V x, $V y) {
  $V r = ep_lit_$s(1);
  EP_EACH {
    $U base = ($U)x[i], power = 1;
    if ($N && y[i] < 0) {
      r[i] = x[i] == 1 ? 1 : x[i] == ($S)-1 ? ((y[i] & 1) != 0 ? x[i] : 1) : 0;
      continue;
    }
    for ($U rest = ($U)y[i]; rest != 0; rest >>= 1) {
      if ((rest & 1) != 0) power *= base;
      base *= base;
    }
    r[i] = ($S)power;
  }
  return ep_wrap_$s(r);
}
EP_CALL $V ep_gcd_$s($V x, $V y) {
  $V r;
  EP_EACH {
    $U a = x[i] < 0 ? ($U)0 - ($U)x[i] : ($U)x[i];
    $U b = y[i] < 0 ? ($U)0 - ($U)y[i] : ($U)y[i];
    while (b != 0) {
      const $U rest = a % b;
      a = b;
      b = rest;
    }
    r[i] = ($S)a;
  }
  return ep_wrap_$s(r);
}
)C";

// Functions of a memory type: `$K` is its vector, `$m` the type of an element, `$t` its dtype.
constexpr std::string_view kMemory = R"C(EP_INLINE $V ep_load_$t(const $m* p) {
  $K r;
  __builtin_memcpy(&r, p, sizeof(r));
  return ep_take_$t(r);
}
EP_INLINE $V ep_load_part_$t(const $m* p, int64_t n) {
  $K r = {};
  __builtin_memcpy(&r, p, (unsigned long)n * sizeof(*p));
  return ep_take_$t(r);
}
EP_INLINE $V ep_load_one_$t(const $m* p) { return ep_take_$t(($K){*p, *p, *p, *p, *p, *p, *p, *p, *p, *p, *p, *p, *p, *p, *p, *p}); }
EP_INLINE $V ep_gather_$t(const $m* p, int64_t step, int64_t n) {
  $K r = {};
  for (int64_t i = 0; i < n; ++i) r[i] = p[i * step];
  return ep_take_$t(r);
}
EP_INLINE void ep_store_$t($m* p, $V x) {
  const $K r = ep_give_$t(x);
  __builtin_memcpy(p, &r, sizeof(r));
}
// Past the cache, where `far` says so and the address is that of a whole line.
EP_INLINE void ep_store_far_$t($m* p, $V x, int far) {
  const $K r = ep_give_$t(x);
  if (far && ((uint64_t)p & (sizeof(r) - 1)) == 0) {
    EP_STORE_FAR(p, r)
  } else {
    __builtin_memcpy(p, &r, sizeof(r));
  }
}
EP_INLINE void ep_store_part_$t($m* p, $V x, int64_t n) {
  const $K r = ep_give_$t(x);
  __builtin_memcpy(p, &r, (unsigned long)n * sizeof(*p));
}
EP_INLINE void ep_scatter_$t($m* p, int64_t step, $V x, int64_t n) {
  const $K r = ep_give_$t(x);
  for (int64_t i = 0; i < n; ++i) p[i * step] = r[i];
}
)C";

constexpr std::string_view kTakeF16 = R"C(EP_INLINE ep_v_f32 ep_take_f16(ep_v_u16 h) {
  const ep_v_i32 x = __builtin_convertvector(h, ep_v_i32);
  const ep_v_i32 a = x & 0x7fff;
  const ep_v_f32 scaled = (ep_v_f32)(a << 13) * ep_splat_f32(0x1p112f);
  const ep_v_i32 special = (a << 13) | 0x7f800000;
  const ep_v_i32 bits = ((a >= 0x7c00) & special) | (~(a >= 0x7c00) & (ep_v_i32)scaled);
  return (ep_v_f32)(bits | ((a > 0x7c00) & 0x400000) | ((x & 0x8000) << 16));
}
EP_INLINE ep_v_u16 ep_give_f16(ep_v_f32 x) {
  const ep_v_i32 bits = (ep_v_i32)x;
  const ep_v_i32 sign = (bits >> 16) & 0x8000;
  const ep_v_i32 a = bits & 0x7fffffff;
  const ep_v_i32 small = (ep_v_i32)((ep_v_f32)a + ep_splat_f32(0.5f)) - 0x3f000000;
  const ep_v_i32 normal = (a + (((a >> 13) & 1) + 0xfff) + (int32_t)0xc8000000) >> 13;
  const ep_v_i32 is_small = a < 0x38800000;
  ep_v_i32 h = (is_small & small) | (~is_small & normal);
  h = ((a >= 0x477ff000) & 0x7c00) | (~(a >= 0x477ff000) & h);
  h = ((a > 0x7f800000) & 0x7e00) | (~(a > 0x7f800000) & h);
  return __builtin_convertvector(h | sign, ep_v_u16);
}
)C";

constexpr std::string_view kTakeBf16 = R"C(EP_INLINE ep_v_f32 ep_take_bf16(ep_v_u16 h) {
  return (ep_v_f32)(__builtin_convertvector(h, ep_v_u32) << 16);
}
EP_INLINE ep_v_u16 ep_give_bf16(ep_v_f32 x) {
  const ep_v_u32 bits = (ep_v_u32)x;
  const ep_v_u32 nan = (bits >> 16) | 0x7fc0;
  const ep_v_u32 rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const ep_v_u32 is_nan = (ep_v_u32)(x != x);
  return __builtin_convertvector((is_nan & (nan & 0xffc0)) | (~is_nan & rounded), ep_v_u16);
}
)C";

std::string replaced(std::string_view text,
                     std::initializer_list<std::pair<std::string_view, std::string_view>> words) {
  std::string result;
  while (!text.empty()) {
    bool found = false;
    if (text.front() == '$') {
      for (const auto& word : words) {
        if (!text.substr(1).starts_with(word.first)) continue;
        result += word.second;
        text.remove_prefix(1 + word.first.size());
        found = true;
        break;
      }
    }
    if (found) continue;
    result += text.front();
    text.remove_prefix(1);
  }
  return result;
}

std::string for_dtype(std::string_view text, DType dtype) {
  const CType type = c_type(dtype);
  const int bits = dtype_info(dtype).bits;
  const bool is_signed = dtype_info(dtype).type_class == DTypeClass::INT;
  const int lane_bits = bits == 64 ? 64 : 32;
  const std::string unsigned_vector = fmt::format("ep_v_u{}", lane_bits);
  std::string wrap = "x";
  if (bits < 32) {
    wrap = is_signed ? fmt::format("(x << {}) >> {}", 32 - bits, 32 - bits)
                     : fmt::format("x & {}u", (uint64_t{1} << bits) - 1);
  }
  const uint64_t most = (bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1) >> (is_signed ? 1 : 0);
  const char* ending = bits == 64 ? (is_signed ? "ll" : "ull") : (is_signed ? "" : "u");
  const std::string highest = fmt::format("{}{}", most, ending);
  const std::string lowest = is_signed ? fmt::format("(-{}{} - 1)", most, ending) : "0";
  const std::string width = fmt::format("{}", bits);
  return replaced(text, {{"s", dtype_name(dtype)},
                         {"S", type.scalar},
                         {"V", type.vector},
                         {"M", type.mask},
                         {"UV", unsigned_vector},
                         {"U", type.unsigned_lane},
                         {"W", width},
                         {"X", wrap},
                         {"L", lowest},
                         {"H", highest},
                         {"N", is_signed ? "1" : "0"},
                         {"f", dtype == DType::f32 ? "f" : ""},
                         {"A", dtype == DType::f32 ? "131072.0f" : "1048576.0"},
                         {"G", dtype == DType::f32 ? "8388608.0f" : "4503599627370496.0"}});
}

// Replaces `$P(x, a, b, c)` and, for f64, `$Q(x, a, b, c)` by (a x + b) x + c.
std::string with_polynomials(std::string_view text, DType dtype) {
  std::string result;
  for (size_t begin = text.find('$'); begin != std::string_view::npos; begin = text.find('$')) {
    result += text.substr(0, begin);
    text.remove_prefix(begin);
    if (!text.starts_with("$P(") && !text.starts_with("$Q(")) {
      result += '$';
      text.remove_prefix(1);
      continue;
    }
    const std::string_view suffix = text[1] == 'Q' ? "f64" : dtype_name(dtype);
    const size_t end = text.find(')');
    std::vector<std::string_view> words;
    for (size_t at = 3; at < end;) {
      const size_t comma = std::min(text.find(',', at), end);
      words.push_back(text.substr(at, comma - at));
      at = text.find_first_not_of(" \n", comma + 1);
    }
    std::string sum = fmt::format("ep_lit_{}({})", suffix, words[1]);
    for (size_t i = 2; i < words.size(); ++i) {
      sum = fmt::format("ep_fma_{0}({1}, {2}, ep_lit_{0}({3}))", suffix, sum, words[0], words[i]);
    }
    result += sum;
    text.remove_prefix(end + 1);
  }
  return result + std::string(text);
}

// --- Pieces

// A function, a macro, a table, or several within one #if; with the names that it defines and the prelude names that it
// uses.
struct Piece {
  std::string text;
  std::vector<std::string> names, words;
};
using Pieces = std::vector<Piece>;

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

// Calls visit(word) for each word of the prelude in `text`.
template <class Visit>
void each_word(std::string_view text, const Visit& visit) {
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string_view word = text.substr(i, end - i);
    if (word.starts_with("ep_") || word.starts_with("EP_")) visit(word);
    i = std::max(end, i + 1);
  }
}

// The name that a line without indentation defines; empty if it defines none.
std::string_view defined_by(std::string_view line) {
  constexpr std::string_view define = "#define ";
  size_t end = line.find_first_of("([");
  if (line.starts_with(define)) {
    end = define.size();
    while (end < line.size() && is_word(line[end])) ++end;
  } else if (!line.starts_with("EP_INLINE ") && !line.starts_with("EP_CALL ") && !line.starts_with("static const ")) {
    return {};
  }
  if (end == std::string_view::npos) return {};
  size_t begin = end;
  while (begin > 0 && is_word(line[begin - 1])) --begin;
  return line.substr(begin, end - begin);
}

void put_within(std::string_view condition, Piece* piece) {
  piece->text = fmt::format("#if {}\n{}#endif\n", condition, piece->text);
}

// Cuts `text` into pieces, each within #if `condition` unless that is empty.
void cut(std::string_view text, std::string_view condition, Pieces* pieces) {
  int depth = 0;
  const size_t first = pieces->size();
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n') + 1);
    text.remove_prefix(line.size());
    const bool at_margin = line[0] != ' ' && line[0] != '}';
    const bool ended = pieces->size() == first || !pieces->back().names.empty();
    if (at_margin && depth == 0 && ended) pieces->emplace_back();
    if (line.starts_with("#if")) ++depth;
    if (line.starts_with("#endif")) --depth;
    pieces->back().text += line;
    if (const std::string_view name = defined_by(line); !name.empty()) pieces->back().names.emplace_back(name);
  }
  for (size_t i = first; i < pieces->size(); ++i) {
    Piece& piece = (*pieces)[i];
    each_word(piece.text, [&](std::string_view word) { piece.words.emplace_back(word); });
    if (!condition.empty()) put_within(condition, &piece);
  }
}

// --- Functions of one float argument

constexpr std::string_view kFused = "defined(EP_FUSES)", kApart = "!defined(EP_FUSES)";

struct FloatFunction {
  std::string_view name;
  bool is_of_library = false;  // C's library has it
};
constexpr FloatFunction kFloatFunctions[] = {
#define EP_FLOAT_FUNCTION(name, function, library, shape, first, last, least, near_roots) \
  {#name, std::string_view(#library) == "C"},
#include "ep_api/accuracy.def"
#undef EP_FLOAT_FUNCTION
};

bool defines(const Piece& piece, std::string_view name) {
  return std::find(piece.names.begin(), piece.names.end(), name) != piece.names.end();
}
bool defines(const Pieces& pieces, std::string_view name) {
  return std::any_of(pieces.begin(), pieces.end(), [&](const Piece& piece) { return defines(piece, name); });
}

void append(Pieces&& more, Pieces* pieces) {
  pieces->insert(pieces->end(), std::move_iterator(more.begin()), std::move_iterator(more.end()));
}

// Adds the functions that C has no text for. `own` has texts for all machines, `fused` for machines with a fused
// multiply-add. A function of f32 calls the one of f64; a function of f64 is a piece of `shared` or calls C's library.
// Removes from `shared` what is not used.
void complete(DType dtype, const Pieces& own, const Pieces& fused, Pieces* shared, Pieces* pieces) {
  Pieces near;
  for (const FloatFunction& each : kFloatFunctions) {
    const std::string name = fmt::format("ep_{}_{}", each.name, dtype_name(dtype));
    const auto add = [&](std::string_view text, std::string_view condition, Pieces* list) {
      cut(for_dtype(replaced(text, {{"n", each.name}}), dtype), condition, list);
    };
    const auto drop_shared = [&] { std::erase_if(*shared, [&](const Piece& piece) { return defines(piece, name); }); };
    if (defines(own, name)) {
      drop_shared();
      continue;
    }
    if (defines(fused, fmt::format("ep_near_{}_{}", each.name, dtype_name(dtype)))) {
      add(kNearText, kFused, &near);
      add(kLibraryText, kApart, &near);
      drop_shared();
      continue;
    }
    const bool is_fused = defines(fused, name);
    const std::string_view condition = is_fused ? kApart : std::string_view();
    if (dtype == DType::f32) {
      add(kByDoubleText, condition, pieces);
    } else if (each.is_of_library && (is_fused || !defines(*shared, name))) {
      add(kLibraryText, condition, pieces);
      drop_shared();
    } else if (is_fused) {
      for (Piece& piece : *shared) {
        if (defines(piece, name)) put_within(kApart, &piece);
      }
    }
  }
  append(std::move(near), pieces);
}

void cut_functions(DType dtype, Pieces* pieces) {
  const auto text = [&](std::string_view of) { return for_dtype(with_polynomials(of, dtype), dtype); };
  const bool is_f32 = dtype == DType::f32;
  Pieces own, fused, shared, others;
  cut(for_dtype(kFloat, dtype), {}, &own);
  cut(text(is_f32 ? prelude_c_f32() : std::string(prelude_c_f64())), {}, &own);
  cut(text(is_f32 ? prelude_c_fused_f32() : prelude_c_fused_f64()), kFused, &fused);
  if (!is_f32) cut(prelude_c_shared(), {}, &shared);
  complete(dtype, own, fused, &shared, &others);
  append(std::move(own), pieces);
  append(std::move(fused), pieces);
  append(std::move(others), pieces);
  cut(for_dtype(kFusedPairs, dtype), kFused, pieces);
  cut(for_dtype(kPairsText, dtype), kApart, pieces);
  cut(for_dtype(kDivisions, dtype), {}, pieces);
  append(std::move(shared), pieces);
}

// The pieces for numbers of one dtype (f32, f64, an integer, bool), made once.
const Pieces& pieces_of(DType dtype) {
  static std::mutex mutex;
  // Never destroyed, because threads may print kernels while the process ends.
  static std::map<DType, Pieces>& all = *new std::map<DType, Pieces>;
  const std::scoped_lock lock(mutex);
  Pieces& pieces = all[dtype];
  if (!pieces.empty()) return pieces;
  cut(for_dtype(kAny, dtype), {}, &pieces);
  if (dtype == DType::boolean) {
    cut(for_dtype(kBool, dtype), {}, &pieces);
  } else {
    cut(for_dtype(kNumeric, dtype), {}, &pieces);
  }
  cut(for_dtype(kShifts, dtype), {}, &pieces);
  if (is_floating(dtype)) {
    cut_functions(dtype, &pieces);
  } else if (dtype != DType::boolean) {
    cut(for_dtype(kInteger, dtype), {}, &pieces);
  }
  return pieces;
}

}  // namespace

CType c_type(DType dtype) {
  switch (dtype) {
    case DType::f16:
    case DType::bf16:
    case DType::f32: return {"float", "ep_v_f32", "ep_v_i32", "uint32_t"};
    case DType::f64: return {"double", "ep_v_f64", "ep_v_i64", "uint64_t"};
    case DType::i64: return {"int64_t", "ep_v_i64", "ep_v_i64", "uint64_t"};
    case DType::u64: return {"uint64_t", "ep_v_u64", "ep_v_i64", "uint64_t"};
    case DType::u8:
    case DType::u16:
    case DType::u32: return {"uint32_t", "ep_v_u32", "ep_v_i32", "uint32_t"};
    default: return {"int32_t", "ep_v_i32", "ep_v_i32", "uint32_t"};
  }
}

std::string_view c_storage(DType dtype) {
  switch (dtype) {
    case DType::boolean:
    case DType::u8: return "uint8_t";
    case DType::i8: return "int8_t";
    case DType::i16: return "int16_t";
    case DType::f16:
    case DType::bf16:
    case DType::u16: return "uint16_t";
    default: return c_type(dtype).scalar;
  }
}

std::string c_memory_vector(DType dtype) {
  const std::string_view scalar = c_storage(dtype);
  if (scalar == "float" || scalar == "double") return std::string(c_type(dtype).vector);
  return fmt::format("ep_v_{}{}", scalar[0], dtype_info(dtype).bits);
}

std::string_view prelude_c_types() { return kTypes; }

std::string_view prelude_c_turn() { return kTurn; }

namespace {

std::string memory_text(DType dtype) {
  const std::string_view vector = c_type(dtype).vector;
  const std::string_view name = dtype_name(dtype);
  const std::string_view scalar = c_storage(dtype);
  const std::string memory = c_memory_vector(dtype);
  std::string text;
  if (dtype == DType::f16) {
    text = kTakeF16;
  } else if (dtype == DType::bf16) {
    text = kTakeBf16;
  } else if (dtype == DType::boolean) {
    text =
        "EP_INLINE ep_v_i32 ep_take_bool(ep_v_u8 x) { return EP_WIDE_U8(x, ep_v_i32) != 0; }\n"
        "EP_INLINE ep_v_u8 ep_give_bool(ep_v_i32 x) { return (ep_v_u8)EP_NARROW_8(x & 1, ep_v_u8); }\n";
  } else if (dtype == DType::i8 || dtype == DType::u8) {
    text = replaced(
        "EP_INLINE $V ep_take_$t($K x) { return ($V)EP_WIDE_$T(x, $V); }\n"
        "EP_INLINE $K ep_give_$t($V x) { return ($K)EP_NARROW_8(x, $K); }\n",
        {{"V", vector}, {"K", memory}, {"t", name}, {"T", dtype == DType::i8 ? "I8" : "U8"}});
  } else {
    text = replaced(
        "EP_INLINE $V ep_take_$t($K x) { return __builtin_convertvector(x, $V); }\n"
        "EP_INLINE $K ep_give_$t($V x) { return __builtin_convertvector(x, $K); }\n",
        {{"V", vector}, {"K", memory}, {"t", name}});
  }
  return text + replaced(kMemory, {{"V", vector}, {"K", memory}, {"m", scalar}, {"t", name}});
}

std::string cast_text(DType from, DType to) {
  const auto is_narrow = [](DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; };
  const CType source = c_type(from);
  const CType target = c_type(to);
  std::string body;
  if (from == DType::boolean) {
    body =
        to == DType::boolean ? "return x;" : fmt::format("return __builtin_convertvector(x & 1, {});", target.vector);
  } else if (to == DType::boolean) {
    body = fmt::format("return __builtin_convertvector(x != ({}){{}}, ep_v_i32);", source.vector);
  } else if (is_floating(from) && !is_floating(to)) {
    // Rounds toward zero; values outside the range of the type become its nearest number, NaN becomes 0.
    const int bits = dtype_info(to).bits;
    const bool is_signed = dtype_info(to).type_class == DTypeClass::INT;
    const std::string high = fmt::format("0x1p{}", is_signed ? bits - 1 : bits);
    const std::string low = is_signed ? "-" + high : "0.0";
    const std::string highest = for_dtype("$H", to);
    const std::string lowest = for_dtype("$L", to);
    body = fmt::format(
        "{} r;\n  EP_EACH r[i] = x[i] >= {} ? ({}){} : x[i] > {} ? ({})x[i] : x[i] <= {} ? ({}){} : 0;\n  return r;",
        target.vector, high, target.scalar, highest, low, target.scalar, low, target.scalar, lowest);
  } else if (is_narrow(to)) {
    std::string number = "x";
    if (source.vector != "ep_v_f32") {
      // Rounds to odd, so that a second rounding is correct (Boldo and Melquiond, Emulation of FMA).
      body =
          "const ep_v_f64 w = __builtin_convertvector(x, ep_v_f64);\n"
          "  ep_v_f32 f = __builtin_convertvector(w, ep_v_f32);\n"
          "  EP_EACH {\n"
          "    union { float f; int32_t i; } u = {f[i]};\n"
          "    if ((double)u.f != w[i] && w[i] == w[i] && (u.i & 1) == 0) {\n"
          "      u.i += (w[i] > (double)u.f) == (u.i >= 0) ? 1 : -1;\n"
          "      f[i] = u.f;\n"
          "    }\n"
          "  }\n  ";
      number = "f";
    }
    body += fmt::format("return ep_take_{}(ep_give_{}({}));", dtype_name(to), dtype_name(to), number);
  } else if (!is_floating(to) && dtype_info(to).bits < 32) {
    body = fmt::format("return ep_wrap_{}(__builtin_convertvector(x, {}));", dtype_name(to), target.vector);
  } else {
    body = fmt::format("return __builtin_convertvector(x, {});", target.vector);
  }
  return fmt::format("EP_INLINE {} ep_cast_{}_{}({} x) {{\n  {}\n}}\n", target.vector, dtype_name(from), dtype_name(to),
                     source.vector, body);
}

}  // namespace

std::string prelude_c(const PreludeUse& use, std::string_view code) {
  Pieces others;
  for (const DType dtype : use.memory) cut(memory_text(dtype), {}, &others);
  for (const auto& cast : use.casts) cut(cast_text(cast.first, cast.second), {}, &others);
  std::vector<const Piece*> pieces;
  const auto add = [&](const Pieces& list) {
    for (const Piece& piece : list) pieces.push_back(&piece);
  };
  // The functions of f32 call those of f64.
  if (use.numbers.contains(DType::f32) || use.numbers.contains(DType::f64)) add(pieces_of(DType::f64));
  for (const DType dtype : use.numbers) {
    if (dtype != DType::f64) add(pieces_of(dtype));
  }
  add(others);
  std::unordered_set<std::string_view> needed;
  each_word(code, [&](std::string_view word) { needed.insert(word); });
  // Each piece comes after the pieces that it uses.
  std::vector<const Piece*> taken;
  for (size_t i = pieces.size(); i-- > 0;) {
    const Piece& piece = *pieces[i];
    if (std::none_of(piece.names.begin(), piece.names.end(),
                     [&](const std::string& name) { return needed.contains(name); })) {
      continue;
    }
    taken.push_back(&piece);
    needed.insert(piece.words.begin(), piece.words.end());
  }
  std::string text;
  for (size_t i = taken.size(); i-- > 0;) text += taken[i]->text;
  return text;
}

std::string with_suffix(std::string_view text, std::string_view suffix) {
  std::string result;
  bool inside = false;  // inside a word that starts with ep_
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    const char before = i == 0 ? ' ' : text[i - 1];
    const bool starts = letter && !((before >= 'a' && before <= 'z') || (before >= '0' && before <= '9') ||
                                    before == '_' || (before >= 'A' && before <= 'Z'));
    if (starts) inside = text.substr(i).starts_with("ep_") && !text.substr(i).starts_with("ep_v_");
    if (!letter && inside) {
      result += '_';
      result += suffix;
      inside = false;
    }
    if (i < text.size()) result += c;
  }
  return result;
}

}  // namespace tenon::codegen
