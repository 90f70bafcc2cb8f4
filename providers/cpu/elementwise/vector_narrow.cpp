// The most common functions on f16 and bf16 without conversion blocks, compiled once per dispatch target. Other
// functions convert blocks (map.h).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/elementwise/vector_narrow.cpp"
#include "hwy/foreach_target.h"
//
#include <algorithm>

#include "providers/cpu/elementwise/narrow-inl.h"
#include "providers/cpu/simd/scalar_ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
// to[i] = f(x[i], y[i]), or f(x[i]) without y.
template <class E, class F>
HWY_INLINE void for_each_narrow(const E* x, const E* y, E* to, int64_t n, const F& some) {
  constexpr auto lanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::MaxLanes(NarrowTag()));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) some(x + i, y == nullptr ? nullptr : y + i, to + i);
  if (i == n) return;
  E rest[3][lanes] = {};
  std::copy(x + i, x + n, rest[0]);
  if (y != nullptr) std::copy(y + i, y + n, rest[1]);
  some(rest[0], rest[1], rest[2]);
  std::copy(rest[2], rest[2] + (n - i), to + i);
}

template <int32_t op, class E>
void narrow_loop(void* dst, const void* const* src, int64_t n, MapContext& context) {
  E* const to = static_cast<E*>(dst);
  const E* const x = static_cast<const E*>(src[0]);
  const E* const y = static_cast<const E*>(src[1]);
  if (context.single == 0) {
    return for_each_narrow(x, y, to, n, [](const E* a, const E* b, E* c) HWY_ATTR {
      store_narrow(binary_row(Op<op>(), load_narrow(a), load_narrow(b)), c);
    });
  }
  const bool first = context.single == 1;
  const NarrowVec one = hwy::HWY_NAMESPACE::Set(NarrowTag(), *static_cast<const float*>(src[first ? 0 : 1]));
  if (first) {
    return for_each_narrow<E>(y, nullptr, to, n, [one](const E* a, const E*, E* c) HWY_ATTR {
      store_narrow(binary_row(Op<op>(), one, load_narrow(a)), c);
    });
  }
  for_each_narrow<E>(x, nullptr, to, n, [one](const E* a, const E*, E* c) HWY_ATTR {
    store_narrow(binary_row(Op<op>(), load_narrow(a), one), c);
  });
}

template <int32_t op, class E>
void narrow_unary_loop(void* dst, const void* const* src, int64_t n, MapContext&) {
  const NarrowVec none = hwy::HWY_NAMESPACE::Zero(NarrowTag());  // unused: these functions have no parameters
  for_each_narrow<E>(static_cast<const E*>(src[0]), nullptr, static_cast<E*>(dst), n,
                     [none](const E* a, const E*, E* c)
                         HWY_ATTR { store_narrow(unary_row(Op<op>(), load_narrow(a), none, none), c); });
}

// A source whose bit of `context.single` is set is one f32.
template <int32_t op, class E>
void narrow_ternary_loop(void* dst, const void* const* src, int64_t n, MapContext& context) {
  constexpr auto lanes = static_cast<int64_t>(hwy::HWY_NAMESPACE::MaxLanes(NarrowTag()));
  const E* from[3] = {};
  NarrowVec one[3];
  for (int k = 0; k < 3; ++k) {
    const bool single = (context.single >> k & 1) != 0;
    if (!single) from[k] = static_cast<const E*>(src[k]);
    one[k] = hwy::HWY_NAMESPACE::Set(NarrowTag(), single ? *static_cast<const float*>(src[k]) : 0.0F);
  }
  E* const to = static_cast<E*>(dst);
  const auto some = [&one](const E* x, const E* y, const E* z, E* result) HWY_ATTR {
    const auto value = [&one](int k, const E* at) HWY_ATTR { return at == nullptr ? one[k] : load_narrow(at); };
    store_narrow(ternary_row(Op<op>(), value(0, x), value(1, y), value(2, z)), result);
  };
  const auto at = [&from](int k, int64_t i) { return from[k] == nullptr ? nullptr : from[k] + i; };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) some(at(0, i), at(1, i), at(2, i), to + i);
  if (i == n) return;
  E rest[4][lanes] = {};
  for (int k = 0; k < 3; ++k) {
    if (from[k] == nullptr) continue;
    std::copy(from[k] + i, from[k] + n, rest[k]);
    from[k] = rest[k];
  }
  some(from[0], from[1], from[2], rest[3]);
  std::copy(rest[3], rest[3] + (n - i), to + i);
}

// neg and abs change only the sign, also of NaN.
template <bool abs>
void sign_loop(void* dst, const void* const* src, int64_t n, MapContext&) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<uint16_t> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* const x = static_cast<const uint16_t*>(src[0]);
  auto* const to = static_cast<uint16_t*>(dst);
  const auto sign = hn::Set(d, uint16_t{0x8000});
  const auto changed = [sign](auto bits) HWY_ATTR { return abs ? hn::AndNot(sign, bits) : hn::Xor(bits, sign); };
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(changed(hn::LoadU(d, x + i)), d, to + i);
  for (; i < n; ++i) to[i] = static_cast<uint16_t>(abs ? x[i] & 0x7fff : x[i] ^ 0x8000);
}

template <class E>
MapFunction narrow_unary_function_of(int32_t op) {
  switch (op) {
    case EP_UNARY_relu: return narrow_unary_loop<EP_UNARY_relu, E>;
    case EP_UNARY_neg: return sign_loop<false>;
    case EP_UNARY_abs: return sign_loop<true>;
    case EP_UNARY_square: return narrow_unary_loop<EP_UNARY_square, E>;
    case EP_UNARY_sign: return narrow_unary_loop<EP_UNARY_sign, E>;
    case EP_UNARY_sqrt: return narrow_unary_loop<EP_UNARY_sqrt, E>;
    case EP_UNARY_rsqrt: return narrow_unary_loop<EP_UNARY_rsqrt, E>;
    case EP_UNARY_reciprocal: return narrow_unary_loop<EP_UNARY_reciprocal, E>;
    default: return nullptr;
  }
}

template <class E>
MapFunction narrow_function_of(int32_t op) {
  switch (op) {
    case EP_BINARY_add: return narrow_loop<EP_BINARY_add, E>;
    case EP_BINARY_sub: return narrow_loop<EP_BINARY_sub, E>;
    case EP_BINARY_mul: return narrow_loop<EP_BINARY_mul, E>;
    case EP_BINARY_div: return narrow_loop<EP_BINARY_div, E>;
    case EP_BINARY_maximum: return narrow_loop<EP_BINARY_maximum, E>;
    case EP_BINARY_minimum: return narrow_loop<EP_BINARY_minimum, E>;
    default: return nullptr;
  }
}

template <class E>
MapFunction narrow_ternary_function_of(int32_t op) {
  switch (op) {
    case EP_TERNARY_clamp: return narrow_ternary_loop<EP_TERNARY_clamp, E>;
    case EP_TERNARY_fma: return narrow_ternary_loop<EP_TERNARY_fma, E>;
    case EP_TERNARY_lerp: return narrow_ternary_loop<EP_TERNARY_lerp, E>;
    default: return nullptr;
  }
}
#endif

}  // namespace

MapFunction narrow_unary_function([[maybe_unused]] int32_t op, [[maybe_unused]] int32_t dtype) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if (dtype == EP_DTYPE_f16) return narrow_unary_function_of<F16Bits>(op);
  if (dtype == EP_DTYPE_bf16) return narrow_unary_function_of<Bf16Bits>(op);
#endif
  return nullptr;
}
MapFunction narrow_function([[maybe_unused]] int32_t op, [[maybe_unused]] int32_t dtype) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if (dtype == EP_DTYPE_f16) return narrow_function_of<F16Bits>(op);
  if (dtype == EP_DTYPE_bf16) return narrow_function_of<Bf16Bits>(op);
#endif
  return nullptr;
}

MapFunction narrow_ternary_function([[maybe_unused]] int32_t op, [[maybe_unused]] int32_t dtype) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  if (dtype == EP_DTYPE_f16) return narrow_ternary_function_of<F16Bits>(op);
  if (dtype == EP_DTYPE_bf16) return narrow_ternary_function_of<Bf16Bits>(op);
#endif
  return nullptr;
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

MapKernel narrow_unary_kernel(SimdLevel level, int32_t op, int32_t dtype) {
  return {TENON_CPU_DISPATCH(level, narrow_unary_function)(op, dtype), dtype, 400, "simd"};
}
MapKernel narrow_binary_kernel(SimdLevel level, int32_t op, int32_t dtype) {
  const int32_t picoseconds = op == EP_BINARY_div ? 600 : 400;
  return {TENON_CPU_DISPATCH(level, narrow_function)(op, dtype), dtype, picoseconds, "simd", false, false, true};
}
MapKernel narrow_ternary_kernel(SimdLevel level, int32_t op, int32_t dtype) {
  return {TENON_CPU_DISPATCH(level, narrow_ternary_function)(op, dtype), dtype, 500, "simd", false, false, true};
}

}  // namespace tenon::provider::cpu
#endif
