// The scalar functions of ep_api/scalar_ops.def over Highway vectors of float, and the loop that runs one of them over
// an array. A file includes it once per dispatch target.
#if defined(TENON_CPU_SIMD_SCALAR_OPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_CPU_SIMD_SCALAR_OPS_INL_H_
#undef TENON_CPU_SIMD_SCALAR_OPS_INL_H_
#else
#define TENON_CPU_SIMD_SCALAR_OPS_INL_H_
#endif

#include <cstring>
#include <type_traits>

#include "ep_api/ep_api.h"
#include "providers/cpu/elementwise/kernel.h"
#include "providers/cpu/simd/prelude-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {

template <int32_t id>
using Op = std::integral_constant<int32_t, id>;

#define TENON_VECTOR_LIT [[maybe_unused]] auto ep_lit = [](double value) HWY_ATTR { return lit<V>(value); };
#define EP_UNARY(name, id, domain, result, expression)                                 \
  template <class V>                                                                   \
  HWY_INLINE auto unary_row(Op<id>, V x, [[maybe_unused]] V a, [[maybe_unused]] V b) { \
    TENON_VECTOR_LIT                                                                   \
    return TENON_ROW_IN(domain, expression);                                           \
  }
#define EP_BINARY(name, id, domain, result, check, expression)    \
  template <class V>                                              \
  HWY_INLINE auto binary_row(Op<id>, V x, [[maybe_unused]] V y) { \
    TENON_VECTOR_LIT                                              \
    return TENON_ROW_IN(domain, expression);                      \
  }
#define EP_TERNARY(name, id, domain, result, expression) \
  template <class V>                                     \
  HWY_INLINE auto ternary_row(Op<id>, V x, V y, V z) {   \
    TENON_VECTOR_LIT                                     \
    return TENON_ROW_IN(domain, expression);             \
  }
// A scalar function that floats do not have becomes x here, and no table holds it.
#define TENON_ROW_IN(domain, expression) TENON_ROW_IN_##domain(expression)
#define TENON_ROW_IN_FLOAT(expression) expression
#define TENON_ROW_IN_SIGNED(expression) expression
#define TENON_ROW_IN_NUMERIC(expression) expression
#define TENON_ROW_IN_ANY(expression) expression
#define TENON_ROW_IN_COND(expression) expression
#define TENON_ROW_IN_INTEGER(expression) x
#define TENON_ROW_IN_BITS(expression) x
#define TENON_ROW_IN_BOOL(expression) x
#include "ep_api/scalar_ops.def"
#undef EP_UNARY
#undef EP_BINARY
#undef EP_TERNARY
#undef TENON_ROW_IN
#undef TENON_ROW_IN_FLOAT
#undef TENON_ROW_IN_SIGNED
#undef TENON_ROW_IN_NUMERIC
#undef TENON_ROW_IN_ANY
#undef TENON_ROW_IN_COND
#undef TENON_ROW_IN_INTEGER
#undef TENON_ROW_IN_BITS
#undef TENON_ROW_IN_BOOL
#undef TENON_VECTOR_LIT

using F32 = hn::ScalableTag<float>;
using VecF32 = hn::Vec<F32>;
inline constexpr bool masked_access_is_safe = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;

// The first `count` < Lanes floats at `from`; the other lanes are 0, or with `ones` 1: functions that leave unusual
// arguments to the C library shall not meet such in lanes that nobody reads.
template <bool ones>
HWY_INLINE VecF32 load_some(const float* from, size_t count) {
  const F32 d;
  if constexpr (masked_access_is_safe) {
    const auto mask = hn::FirstN(d, count);
    const VecF32 some = hn::MaskedLoad(mask, d, from);
    return ones ? hn::IfThenElse(mask, some, hn::Set(d, 1.0f)) : some;
  } else {
    HWY_ALIGN float lanes[hn::MaxLanes(F32())];
    hn::Store(hn::Set(d, ones ? 1.0f : 0.0f), d, lanes);
    std::memcpy(lanes, from, count * sizeof(float));
    return hn::Load(d, lanes);
  }
}
HWY_INLINE void store_some(VecF32 value, float* to, size_t count) {
  const F32 d;
  if constexpr (masked_access_is_safe) {
    hn::BlendedStore(value, hn::FirstN(d, count), d, to);
  } else {
    HWY_ALIGN float lanes[hn::MaxLanes(F32())];
    hn::Store(value, d, lanes);
    std::memcpy(to, lanes, count * sizeof(float));
  }
}

// Stores one result vector: floats as floats, a mask as bytes 0 and 1.
HWY_INLINE void store_result(VecF32 value, void* dst, int64_t i, size_t count) {
  float* to = static_cast<float*>(dst) + i;
  if (hn::MaxLanes(F32()) == 1 || count == hn::Lanes(F32()))
    hn::StoreU(value, F32(), to);
  else
    store_some(value, to, count);
}
HWY_INLINE void store_result(hn::Mask<F32> mask, void* dst, int64_t i, size_t count) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  const hn::Rebind<uint8_t, F32> d8;
  const auto ones = hn::IfThenElseZero(hn::RebindMask(di, mask), hn::Set(di, 1));
  uint8_t* to = static_cast<uint8_t*>(dst) + i;
  if (hn::MaxLanes(d) == 1 || count == hn::Lanes(d)) {
    hn::StoreU(hn::DemoteTo(d8, ones), d8, to);
  } else {
    HWY_ALIGN uint8_t lanes[hn::MaxLanes(F32())];
    hn::StoreU(hn::DemoteTo(d8, ones), d8, lanes);
    std::memcpy(to, lanes, count);
  }
}

HWY_INLINE VecF32 broadcast_parameter(const unsigned char* bytes) {
  float value;
  std::memcpy(&value, bytes, sizeof value);
  return hn::Set(F32(), value);
}

// Computes f(src[0][i..], ...) for one whole vector, or for the first `count` elements.
template <int arity, class Row>
HWY_INLINE auto row_at(const float* const* from, int64_t i, const Row& row) {
  constexpr F32 d;
  if constexpr (arity == 1)
    return row(hn::LoadU(d, from[0] + i));
  else if constexpr (arity == 2)
    return row(hn::LoadU(d, from[0] + i), hn::LoadU(d, from[1] + i));
  else
    return row(hn::LoadU(d, from[0] + i), hn::LoadU(d, from[1] + i), hn::LoadU(d, from[2] + i));
}
template <int arity, bool ones, class Row>
HWY_INLINE auto row_of_some(const float* const* from, int64_t i, size_t count, const Row& row) {
  if constexpr (arity == 1)
    return row(load_some<ones>(from[0] + i, count));
  else if constexpr (arity == 2)
    return row(load_some<ones>(from[0] + i, count), load_some<ones>(from[1] + i, count));
  else
    return row(load_some<ones>(from[0] + i, count), load_some<ones>(from[1] + i, count),
               load_some<ones>(from[2] + i, count));
}

// dst[i] = f(src[0][i], ...) with `arity` sources. `row` is f on vectors. `stream` writes past the cache.
template <int arity, bool ones = false, class Row>
HWY_INLINE void for_each_vector(void* dst, const void* const* src, int64_t n, bool stream, const Row& row) {
  constexpr F32 d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float* from[arity];
  for (int k = 0; k < arity; ++k) from[k] = static_cast<const float*>(src[k]);
  int64_t i = 0;
  using Result = decltype(row_at<arity>(from, i, row));
  if constexpr (std::is_same_v<Result, VecF32> && hn::MaxLanes(d) > 1) {
    if (stream) {
      float* to = static_cast<float*>(dst);
      const auto beyond = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) / sizeof(float)) % lanes;
      const int64_t head = beyond == 0 ? 0 : lanes - beyond < n ? lanes - beyond : n;
      if (head != 0)
        store_some(row_of_some<arity, ones>(from, 0, static_cast<size_t>(head), row), to, static_cast<size_t>(head));
      for (i = head; i + lanes <= n; i += lanes) hn::Stream(row_at<arity>(from, i, row), d, to + i);
    }
  }
  for (; i + lanes <= n; i += lanes) store_result(row_at<arity>(from, i, row), dst, i, hn::Lanes(d));
  if constexpr (hn::MaxLanes(d) > 1) {
    if (i == n) return;
    const auto rest = static_cast<size_t>(n - i);
    store_result(row_of_some<arity, ones>(from, i, rest, row), dst, i, rest);
  }
}

template <int32_t op>
void unary_loop(void* dst, const void* const* src, int64_t n, MapContext& context) {
  const VecF32 a = broadcast_parameter(context.a);
  const VecF32 b = broadcast_parameter(context.b);
  for_each_vector<1>(dst, src, n, context.stream, [a, b](VecF32 x) HWY_ATTR { return unary_row(Op<op>(), x, a, b); });
}
inline constexpr bool leaves_unusual(int32_t op) {
  return op == EP_BINARY_pow || op == EP_BINARY_fmod || op == EP_BINARY_mod || op == EP_BINARY_floor_div;
}

// One of the sources is a single element, which stays in a register.
template <int32_t op>
HWY_NOINLINE void binary_loop_by_one(void* dst, const void* const* src, int64_t n, MapContext& context) {
  const bool first = context.single == 1;
  const VecF32 one = hn::Set(F32(), *static_cast<const float*>(src[first ? 0 : 1]));
  if (first) {
    return for_each_vector<1, leaves_unusual(op)>(dst, src + 1, n, context.stream,
                                                  [one](VecF32 y) HWY_ATTR { return binary_row(Op<op>(), one, y); });
  }
  for_each_vector<1, leaves_unusual(op)>(dst, src, n, context.stream,
                                         [one](VecF32 x) HWY_ATTR { return binary_row(Op<op>(), x, one); });
}

template <int32_t op>
void binary_loop(void* dst, const void* const* src, int64_t n, MapContext& context) {
  if (context.single != 0) [[unlikely]]
    return binary_loop_by_one<op>(dst, src, n, context);
  for_each_vector<2, leaves_unusual(op)>(dst, src, n, context.stream,
                                         [](VecF32 x, VecF32 y) HWY_ATTR { return binary_row(Op<op>(), x, y); });
}
template <int32_t op>
void ternary_loop(void* dst, const void* const* src, int64_t n, MapContext& context) {
  for_each_vector<3>(dst, src, n, context.stream,
                     [](VecF32 x, VecF32 y, VecF32 z) HWY_ATTR { return ternary_row(Op<op>(), x, y, z); });
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
