// Casts between f32 and the other types, f64 and the integers, and i64 and narrower integers, compiled once per
// dispatch target. Most are loops without branches, which the compiler vectorises.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/elementwise/vector_cast.cpp"
#include "hwy/foreach_target.h"
//
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
  else if constexpr (is_narrow_float<From>)
    return to_f32(value);
  else
    return cast<To>(value);
}

template <class To, class From>
HWY_INLINE void row(To* HWY_RESTRICT out, const From* HWY_RESTRICT in, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = cast_one<To>(in[i]);
}

HWY_INLINE void row(float* HWY_RESTRICT out, const F16Bits* HWY_RESTRICT in, int64_t n) {
  const NarrowTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(load_narrow(in + i), d, out + i);
  for (; i < n; ++i) out[i] = to_f32(in[i]);
}

HWY_INLINE void row(F16Bits* HWY_RESTRICT out, const float* HWY_RESTRICT in, int64_t n) {
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
  for (; i + lanes <= n; i += lanes) store_narrow(hn::LoadU(d, in + i), out + i);
  for (; i < n; ++i) out[i] = cast<F16Bits>(in[i]);
}

// ConvertTo saturates.
HWY_INLINE void row(int32_t* HWY_RESTRICT out, const float* HWY_RESTRICT in, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<hn::ScalableTag<float>> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::LoadU(d, in + i);
    hn::StoreU(hn::IfThenElseZero(hn::RebindMask(di, hn::Eq(x, x)), hn::ConvertTo(di, x)), di, out + i);
  }
  for (; i < n; ++i) out[i] = saturate<int32_t>(in[i]);
}

HWY_INLINE void row(Bf16Bits* HWY_RESTRICT out, const float* HWY_RESTRICT in, int64_t n) {
  const auto* bits_in = reinterpret_cast<const uint32_t*>(in);
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = bits_in[i];
    const uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x40U;
    out[i] = {static_cast<uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded)};
  }
}

template <class To, class From>
void convert(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t n) {
  To* out = static_cast<To*>(dst);
  const From* in = static_cast<const From*>(src);
  if (dst_stride == 1 && src_stride == 1) return row(out, in, n);
  for (int64_t i = 0; i < n; ++i) out[i * dst_stride] = cast_one<To>(in[i * src_stride]);
}

constexpr int64_t stream_step = 64;  // elements per step past the cache: whole cache lines for any type

// Converts stream_step elements to `out`, a multiple of 64, past the cache.
template <class To, class From>
HWY_INLINE void stream_some(To* HWY_RESTRICT out, const From* HWY_RESTRICT in) {
  alignas(64) To some[stream_step];
  row(some, in, stream_step);
  const hn::ScalableTag<uint8_t> d;
  const auto* from = reinterpret_cast<const uint8_t*>(some);
  auto* to = reinterpret_cast<uint8_t*>(out);
  for (size_t i = 0; i < sizeof(some); i += hn::Lanes(d)) hn::Stream(hn::Load(d, from + i), d, to + i);
}

HWY_INLINE NarrowVec load_f32(const F16Bits* from) { return load_narrow(from); }
HWY_INLINE NarrowVec load_f32(const Bf16Bits* from) { return load_narrow(from); }
template <class From>
HWY_INLINE NarrowVec load_f32(const From* from) {
  const NarrowTag d;
  const hn::Rebind<int32_t, NarrowTag> di;
  const hn::Rebind<From, NarrowTag> bytes;
  return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(bytes, from)));
}

// From registers, without the lines of the function above, which is slower for these types.
template <class From, std::enable_if_t<sizeof(From) <= 2, int> = 0>
HWY_INLINE void stream_some(float* HWY_RESTRICT out, const From* HWY_RESTRICT in) {
  const NarrowTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < stream_step; i += lanes) hn::Stream(load_f32(in + i), d, out + i);
}

template <class To, class From>
void stream(void* dst, const void* src, int64_t n) {
  To* out = static_cast<To*>(dst);
  const From* in = static_cast<const From*>(src);
  const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(dst) % 64);
  constexpr int64_t size = sizeof(To);
  const int64_t head = past % size != 0 ? n : (past == 0 ? 0 : (64 - past) / size < n ? (64 - past) / size : n);
  convert<To, From>(out, 1, in, 1, head);
  int64_t i = head;
  for (; i + stream_step <= n; i += stream_step) {
    stream_some(out + i, in + i);
  }
  convert<To, From>(out + i, 1, in + i, 1, n - i);
}

template <class To, class From>
constexpr VectorCast both() {
  return {convert<To, From>, stream<To, From>};
}

template <class From>
VectorCast from_number(int32_t to) {
  switch (to) {
    case EP_DTYPE_f32: return both<float, From>();
    case EP_DTYPE_f64: return both<double, From>();
    case EP_DTYPE_i64: return both<int64_t, From>();
    case EP_DTYPE_i32: return both<int32_t, From>();
    case EP_DTYPE_i8: return both<int8_t, From>();
    case EP_DTYPE_u8: return both<uint8_t, From>();
    case EP_DTYPE_bool: return both<bool, From>();
    default: return {};
  }
}

VectorCast chosen(int32_t from, int32_t to) {
  if (from == to) return {};
  switch (from) {
    case EP_DTYPE_f32:
      if (to == EP_DTYPE_f16) return both<F16Bits, float>();
      if (to == EP_DTYPE_bf16) return both<Bf16Bits, float>();
      if (to == EP_DTYPE_i16) return both<int16_t, float>();
      if (to == EP_DTYPE_u16) return both<uint16_t, float>();
      if (to == EP_DTYPE_u32) return both<uint32_t, float>();
      return from_number<float>(to);
    case EP_DTYPE_f64: return from_number<double>(to);
    case EP_DTYPE_i64: return from_number<int64_t>(to);
    case EP_DTYPE_i32: return from_number<int32_t>(to);
    case EP_DTYPE_i8: return from_number<int8_t>(to);
    case EP_DTYPE_bool:
    case EP_DTYPE_u8: return from_number<uint8_t>(to);
    case EP_DTYPE_f16: return to == EP_DTYPE_f32 ? both<float, F16Bits>() : VectorCast{};
    case EP_DTYPE_bf16: return to == EP_DTYPE_f32 ? both<float, Bf16Bits>() : VectorCast{};
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
