// Casts between all types of at least a byte, compiled once per dispatch target; 8-bit floats become other types than
// f32, f16 and bf16 through f32. Casts between integers, and most casts to f32, f64 and 64-bit integers, are loops
// without branches, which the compiler vectorises.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/elementwise/vector_cast.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <limits>
#include <type_traits>

#include "ep_api/ep_api.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "providers/cpu/elementwise/cast.h"
#include "providers/cpu/elementwise/narrow-inl.h"
#include "providers/cpu/elementwise/vector_cast.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
namespace hn = hwy::HWY_NAMESPACE;

// Truncates and saturates like cast(), without a branch.
template <class I, class F>
HWY_INLINE I saturate(F value) {
  using Wide =
      std::conditional_t<(sizeof(I) < 4), int32_t, std::conditional_t<std::is_same_v<I, uint32_t>, int64_t, I>>;
  constexpr F least = static_cast<F>(std::numeric_limits<I>::min());
  constexpr F limit = static_cast<F>(std::numeric_limits<I>::max() / 2 + 1) * F{2};  // greatest value plus one
  constexpr F greatest = limit * (F{1} - std::numeric_limits<F>::epsilon() / F{2});
  F kept = value >= least ? value : least;
  kept = kept < limit ? kept : greatest;
  I result = static_cast<I>(static_cast<Wide>(kept));
  result = value >= limit ? std::numeric_limits<I>::max() : result;
  return value == value ? result : I{0};
}

template <class To, class From>
HWY_INLINE To cast_one(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To> && !std::is_same_v<To, bool>)
    return saturate<To>(value);
  else
    return cast<To>(value);
}

using HalfTag = hn::Half<NarrowTag>;
using WideTag = hn::Rebind<double, HalfTag>;

// Rounds `x` to odd: its `bits` low bits become one sticky bit. A second rounding to a format that is at least two bits
// shorter then equals a direct rounding of the number.
template <int bits, class V>
HWY_INLINE V jam(V x) {
  const hn::DFromV<V> d;
  using T = hn::TFromV<V>;
  const V low = hn::Set(d, (T{1} << bits) - 1);
  const V sticky = hn::And(hn::Add(hn::And(x, low), low), hn::Set(d, T{1} << bits));
  return hn::Or(hn::AndNot(low, x), sticky);
}

// jam for integers beyond 2^exact; keeps the others.
template <int bits, int exact, class V>
HWY_INLINE V jam_large(V x) {
  const hn::DFromV<V> d;
  const V limit = hn::Set(d, hn::TFromV<V>{1} << exact);
  if constexpr (std::is_signed_v<hn::TFromV<V>>)
    return hn::IfThenElse(hn::Gt(hn::Abs(x), limit), jam<bits>(x), x);
  else
    return hn::IfThenElse(hn::Gt(x, limit), jam<bits>(x), x);
}

// to_odd_f32 of a vector. Numbers beyond the greatest float may become the greatest float: a further rounding to a
// narrow float gives the same for both.
#if HWY_TARGET == HWY_AVX3
HWY_INLINE hn::Vec<HalfTag> odd_f32(hn::Vec<WideTag> x) {
  const __m256 truncated = _mm512_cvt_roundpd_ps(x.raw, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  const __mmask8 inexact = _mm512_cmp_pd_mask(_mm512_cvtps_pd(truncated), x.raw, _CMP_NEQ_UQ);
  const __m256i bits = _mm256_castps_si256(truncated);
  return hn::Vec<HalfTag>{_mm256_castsi256_ps(_mm256_mask_or_epi32(bits, inexact, bits, _mm256_set1_epi32(1)))};
}
#else
HWY_INLINE hn::Vec<HalfTag> odd_f32(hn::Vec<WideTag> x) {
  const WideTag d;
  const hn::RebindToUnsigned<WideTag> du;
  const hn::RebindToSigned<WideTag> di;
  const auto denormal = hn::AndNot(hn::Eq(x, hn::Zero(d)), hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-126)));
  if (hn::AllFalse(d, denormal)) return hn::DemoteTo(HalfTag(), hn::BitCast(d, jam<29>(hn::BitCast(du, x))));
  // A number below the least float becomes the least float.
  x = hn::IfThenElse(denormal, hn::CopySign(hn::Max(hn::Abs(x), hn::Set(d, 0x1p-149)), x), x);
  const auto all = hn::BitCast(du, x);
  // A denormal float has fewer bits, depending on the exponent. 897 is the exponent of 2^-126 in a double.
  const auto exponent = hn::BitCast(di, hn::And(hn::ShiftRight<52>(all), hn::Set(du, 0x7ff)));
  const auto fewer = hn::Min(hn::Max(hn::Sub(hn::Set(di, 897), exponent), hn::Zero(di)), hn::Set(di, 22));
  const auto step = hn::Shl(hn::Set(du, 1), hn::BitCast(du, hn::Add(fewer, hn::Set(di, 29))));
  const auto low = hn::Sub(step, hn::Set(du, 1));
  const auto sticky = hn::And(hn::Add(hn::And(all, low), low), step);
  return hn::DemoteTo(HalfTag(), hn::BitCast(d, hn::Or(hn::AndNot(low, all), sticky)));
}
#endif

// As many elements as a vector of f32 has, converted to f32: exactly if possible, else rounded to odd.
template <class From>
HWY_INLINE NarrowVec load_odd(const From* from) {
  const NarrowTag d;
  if constexpr (is_narrow_float<From>) {
    return load_narrow(from);
  } else if constexpr (std::is_same_v<From, float>) {
    return hn::LoadU(d, from);
  } else if constexpr (sizeof(From) == 8) {
    const hn::Rebind<From, HalfTag> half;
    const auto widened = [](auto x) HWY_ATTR {
      if constexpr (std::is_same_v<From, double>)
        return x;
      else
        return hn::ConvertTo(WideTag(), jam_large<12, 53>(x));  // at most 52 bits are left, so this is exact
    };
    const auto lower = odd_f32(widened(hn::LoadU(half, from)));
    const auto upper = odd_f32(widened(hn::LoadU(half, from + hn::Lanes(half))));
    return hn::Combine(d, upper, lower);
  } else if constexpr (sizeof(From) == 4) {
    return hn::ConvertTo(d, jam_large<8, 24>(hn::LoadU(hn::Rebind<From, NarrowTag>(), from)));
  } else {
    const hn::Rebind<int32_t, NarrowTag> di;
    return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(hn::Rebind<From, NarrowTag>(), from)));
  }
}

// As many elements as a vector of f32 has, truncated to i32. Saturates; NaN becomes 0.
template <class From>
HWY_INLINE hn::Vec<hn::Rebind<int32_t, NarrowTag>> load_i32(const From* from) {
  const hn::Rebind<int32_t, NarrowTag> di;
  if constexpr (std::is_same_v<From, double>) {
    const WideTag d;
    const hn::Half<decltype(di)> half;
    const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + hn::Lanes(d));
    return hn::Combine(di, hn::DemoteTo(half, hn::IfThenElseZero(hn::Eq(b, b), b)),
                       hn::DemoteTo(half, hn::IfThenElseZero(hn::Eq(a, a), a)));
  } else {
    const auto x = load_odd(from);
    return hn::IfThenElseZero(hn::RebindMask(di, hn::Eq(x, x)), hn::ConvertTo(di, x));
  }
}

template <class T>
inline constexpr bool is_any_float = is_narrow_float<T> || std::is_floating_point_v<T>;
template <class T>
inline constexpr bool is_short_integer =
    std::is_integral_v<T> && !std::is_same_v<T, bool> && (sizeof(T) <= 2 || std::is_same_v<T, int32_t>);

// True if cast_vector converts this pair; the compiler vectorises a loop over the other pairs.
template <class To, class From>
inline constexpr bool has_cast_vector = is_narrow_float<To> || (is_any_float<From> && is_short_integer<To>) ||
                                        (is_narrow_float<From> && std::is_floating_point_v<To>);

// Converts as many elements as a vector of f32 has.
template <class To, class From>
HWY_INLINE void cast_vector(To* out, const From* in) {
  const NarrowTag d;
  if constexpr (is_narrow_float<To>) {
    store_narrow(load_odd(in), out);
  } else if constexpr (std::is_same_v<To, float>) {
    hn::StoreU(load_odd(in), d, out);
  } else if constexpr (std::is_same_v<To, double>) {
    const WideTag wide;
    const auto x = load_odd(in);
    hn::StoreU(hn::PromoteTo(wide, hn::LowerHalf(HalfTag(), x)), wide, out);
    hn::StoreU(hn::PromoteTo(wide, hn::UpperHalf(HalfTag(), x)), wide, out + hn::Lanes(wide));
  } else if constexpr (std::is_same_v<To, int32_t>) {
    hn::StoreU(load_i32(in), hn::Rebind<int32_t, NarrowTag>(), out);
  } else {
    const hn::Rebind<To, NarrowTag> narrow;
    auto whole = load_i32(in);
    // DemoteTo saturates, but to u8 only if the number fits i16.
    if constexpr (std::is_same_v<To, uint8_t>) whole = hn::Min(whole, hn::Set(hn::DFromV<decltype(whole)>(), 255));
    hn::StoreU(hn::DemoteTo(narrow, whole), narrow, out);
  }
}

// From f32 to f16, a whole group of vectors without NaN at a time. Returns the number of elements converted.
HWY_INLINE int64_t cast_groups(F16Bits* HWY_RESTRICT out, const float* HWY_RESTRICT in, int64_t n) {
  const NarrowTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const hn::Rebind<hwy::float16_t, NarrowTag> half;
  auto* halves = reinterpret_cast<hwy::float16_t*>(out);
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto a = hn::LoadU(d, in + i), b = hn::LoadU(d, in + i + lanes);
    const auto c = hn::LoadU(d, in + i + 2 * lanes), e = hn::LoadU(d, in + i + 3 * lanes);
    // A sum is NaN if an operand is NaN. It may also be NaN for two infinities, which is harmless.
    if (!hn::AllFalse(d, hn::Or(hn::IsNaN(hn::Add(a, b)), hn::IsNaN(hn::Add(c, e))))) {
      for (int64_t k = 0; k < 4; ++k) store_narrow(hn::LoadU(d, in + i + k * lanes), out + i + k * lanes);
      continue;
    }
    hn::StoreU(hn::DemoteTo(half, a), half, halves + i);
    hn::StoreU(hn::DemoteTo(half, b), half, halves + i + lanes);
    hn::StoreU(hn::DemoteTo(half, c), half, halves + i + 2 * lanes);
    hn::StoreU(hn::DemoteTo(half, e), half, halves + i + 3 * lanes);
  }
  return i;
}

template <class To, class From>
HWY_INLINE void row(To* HWY_RESTRICT out, const From* HWY_RESTRICT in, int64_t n) {
  if constexpr (has_cast_vector<To, From>) {
    constexpr auto lanes = static_cast<int64_t>(hn::MaxLanes(NarrowTag()));
    int64_t i = 0;
    if constexpr (std::is_same_v<To, F16Bits> && std::is_same_v<From, float>) i = cast_groups(out, in, n);
    for (; i + lanes <= n; i += lanes) cast_vector(out + i, in + i);
    if (i == n) return;
    From from[lanes] = {};
    To to[lanes];
    std::copy_n(in + i, n - i, from);
    cast_vector(to, from);
    std::copy_n(to, n - i, out + i);
  } else if constexpr (is_narrow_float<From> && sizeof(From) == 2 && std::is_same_v<To, bool>) {
    constexpr unsigned magnitude = 0x7fff;
    for (int64_t i = 0; i < n; ++i) out[i] = (in[i].bits & magnitude) != 0;
  } else if constexpr (is_narrow_float<From>) {
    constexpr int64_t block = 256;
    float wide[block];
    for (int64_t i = 0; i < n; i += block) {
      const int64_t count = std::min(block, n - i);
      row(wide, in + i, count);
      row(out + i, wide, count);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = cast_one<To>(in[i]);
  }
}

// Converts n contiguous elements; one function per pair of types, which all others call.
using RowFunction = void (*)(void* out, const void* in, int64_t n);
template <class To, class From>
void row_of(void* out, const void* in, int64_t n) {
  row(static_cast<To*>(out), static_cast<const From*>(in), n);
}

// Elements of To and From are moved as bits.
template <class To, class From>
HWY_NOINLINE void convert_strided(RowFunction cast, To* out, int64_t dst_stride, const From* in, int64_t src_stride,
                                  int64_t n) {
  constexpr int64_t block = 256;
  From from[block];
  To to[block];
  asm("" : "+r"(cast));  // hides the function, whose types differ, from the optimiser
  for (int64_t i = 0; i < n; i += block) {
    const int64_t count = std::min(block, n - i);
    if (src_stride != 1) gather(from, in + i * src_stride, src_stride, count);
    cast(dst_stride == 1 ? out + i : to, src_stride == 1 ? in + i : from, count);
    for (int64_t k = 0; k < (dst_stride == 1 ? 0 : count); ++k) out[(i + k) * dst_stride] = to[k];
  }
}

template <class T>
using BitsOf = std::conditional_t<
    sizeof(T) == 1, uint8_t,
    std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class To, class From>
void convert(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t n) {
  if (dst_stride == 1 && src_stride == 1) return row_of<To, From>(dst, src, n);
  convert_strided(row_of<To, From>, static_cast<BitsOf<To>*>(dst), dst_stride, static_cast<const BitsOf<From>*>(src),
                  src_stride, n);
}

constexpr int64_t stream_step = 256;  // elements per step past the cache: whole cache lines for any type

// Copies `count` bytes, a multiple of 64, to `to`, a multiple of 64, past the cache.
HWY_INLINE void stream_bytes(uint8_t* to, const uint8_t* from, size_t count) {
  const hn::ScalableTag<uint8_t> d;
  for (size_t i = 0; i < count; i += hn::Lanes(d)) hn::Stream(hn::Load(d, from + i), d, to + i);
}

// Converts stream_step elements from registers to `out`, past the cache; faster than through a buffer.
template <class From>
void stream_floats(void* out, const void* in) {
  const NarrowTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < stream_step; i += lanes)
    hn::Stream(load_odd(static_cast<const From*>(in) + i), d, static_cast<float*>(out) + i);
}
using StepFunction = void (*)(void* out, const void* in);

// `direct` converts a step past the cache; if it is NULL, steps pass through a buffer.
HWY_NOINLINE void stream_rows(RowFunction cast, StepFunction direct, uint8_t* out, int64_t to_size, const uint8_t* in,
                              int64_t from_size, int64_t n) {
  alignas(64) uint8_t some[stream_step * 8];
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(out) % 64);
  const int64_t head = past % to_size != 0 ? n : std::min(past == 0 ? 0 : (64 - past) / to_size, n);
  cast(out, in, head);
  int64_t i = head;
  for (; i + stream_step <= n; i += stream_step) {
    if (direct != nullptr) {
      direct(out + i * to_size, in + i * from_size);
      continue;
    }
    cast(some, in + i * from_size, stream_step);
    stream_bytes(out + i * to_size, some, static_cast<size_t>(stream_step * to_size));
  }
  cast(out + i * to_size, in + i * from_size, n - i);
}

template <class To, class From>
void stream(void* dst, const void* src, int64_t n) {
  StepFunction direct = nullptr;
  if constexpr (std::is_same_v<To, float> && sizeof(From) <= 2) direct = stream_floats<From>;
  stream_rows(row_of<To, From>, direct, static_cast<uint8_t*>(dst), sizeof(To), static_cast<const uint8_t*>(src),
              sizeof(From), n);
}

// A cast between integers depends on their sizes alone, and on the sign of the source if the result is wider.
template <class To, class From>
constexpr VectorCast both() {
  if constexpr (std::is_integral_v<To> && std::is_integral_v<From> && !std::is_same_v<To, bool>) {
    using Wrapped = std::make_unsigned_t<To>;
    using Source = std::conditional_t<(sizeof(To) <= sizeof(From)), std::make_unsigned_t<From>, From>;
    return {convert<Wrapped, Source>, stream<Wrapped, Source>};
  } else {
    return {convert<To, From>, stream<To, From>};
  }
}

template <class From>
VectorCast from_type(int32_t to) {
  switch (to) {
    case EP_DTYPE_bool: return both<bool, From>();
    case EP_DTYPE_i8: return both<int8_t, From>();
    case EP_DTYPE_i16: return both<int16_t, From>();
    case EP_DTYPE_i32: return both<int32_t, From>();
    case EP_DTYPE_i64: return both<int64_t, From>();
    case EP_DTYPE_u8: return both<uint8_t, From>();
    case EP_DTYPE_u16: return both<uint16_t, From>();
    case EP_DTYPE_u32: return both<uint32_t, From>();
    case EP_DTYPE_u64: return both<uint64_t, From>();
    case EP_DTYPE_f16: return both<F16Bits, From>();
    case EP_DTYPE_bf16: return both<Bf16Bits, From>();
    case EP_DTYPE_f32: return both<float, From>();
    case EP_DTYPE_f64: return both<double, From>();
    case EP_DTYPE_f8e4m3fn: return both<F8E4M3FNBits, From>();
    case EP_DTYPE_f8e5m2: return both<F8E5M2Bits, From>();
    case EP_DTYPE_f8e4m3fnuz: return both<F8E4M3FNUZBits, From>();
    case EP_DTYPE_f8e5m2fnuz: return both<F8E5M2FNUZBits, From>();
    case EP_DTYPE_f8e8m0: return both<F8E8M0Bits, From>();
    default: return {};
  }
}

// Casts from a float of a byte.
template <class From>
VectorCast from_byte(int32_t to) {
  switch (to) {
    case EP_DTYPE_f16: return both<F16Bits, From>();
    case EP_DTYPE_bf16: return both<Bf16Bits, From>();
    case EP_DTYPE_f32: return both<float, From>();
    default: return {};
  }
}

VectorCast chosen(int32_t from, int32_t to) {
  if (from == to) return {};
  switch (from) {
    case EP_DTYPE_bool:
    case EP_DTYPE_u8: return from_type<uint8_t>(to);
    case EP_DTYPE_i8: return from_type<int8_t>(to);
    case EP_DTYPE_i16: return from_type<int16_t>(to);
    case EP_DTYPE_i32: return from_type<int32_t>(to);
    case EP_DTYPE_i64: return from_type<int64_t>(to);
    case EP_DTYPE_u16: return from_type<uint16_t>(to);
    case EP_DTYPE_u32: return from_type<uint32_t>(to);
    case EP_DTYPE_u64: return from_type<uint64_t>(to);
    case EP_DTYPE_f16: return from_type<F16Bits>(to);
    case EP_DTYPE_bf16: return from_type<Bf16Bits>(to);
    case EP_DTYPE_f32: return from_type<float>(to);
    case EP_DTYPE_f64: return from_type<double>(to);
    case EP_DTYPE_f8e4m3fn: return from_byte<F8E4M3FNBits>(to);
    case EP_DTYPE_f8e5m2: return from_byte<F8E5M2Bits>(to);
    case EP_DTYPE_f8e4m3fnuz: return from_byte<F8E4M3FNUZBits>(to);
    case EP_DTYPE_f8e5m2fnuz: return from_byte<F8E5M2FNUZBits>(to);
    case EP_DTYPE_f8e8m0: return from_byte<F8E8M0Bits>(to);
    default: return {};
  }
}

template <class T>
void fill(void* dst, const void* value, int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  T* out = static_cast<T*>(dst);
  const T one = *static_cast<const T*>(value);
  const auto all = hn::Set(d, one);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(all, d, out + i);
  for (; i < n; ++i) out[i] = one;
}

FillFunction fill_of(int32_t size) {
  switch (size) {
    case 1: return fill<uint8_t>;
    case 2: return fill<uint16_t>;
    case 4: return fill<uint32_t>;
    case 8: return fill<uint64_t>;
    default: return nullptr;
  }
}
#else
VectorCast chosen(int32_t, int32_t) { return {}; }
FillFunction fill_of(int32_t) { return nullptr; }
#endif

}  // namespace

VectorCast chosen_cast(int32_t from, int32_t to) { return chosen(from, to); }
FillFunction chosen_fill(int32_t size) { return fill_of(size); }

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

VectorCast vector_cast(SimdLevel level, int32_t from, int32_t to) {
  return TENON_CPU_DISPATCH(level, chosen_cast)(from, to);
}

FillFunction vector_fill(SimdLevel level, int32_t size) { return TENON_CPU_DISPATCH(level, chosen_fill)(size); }

}  // namespace tenon::provider::cpu
#endif
