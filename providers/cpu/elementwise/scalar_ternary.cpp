// The ternary scalar functions for every type except f32. `where` only moves elements, so its kernels differ by size.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/elementwise/scalar_ternary.cpp"
#include "hwy/foreach_target.h"
//
#include "ep_api/ep_api.h"
#include "hwy/highway.h"
#include "providers/cpu/elementwise/kernel.h"
#include "providers/cpu/elementwise/scalar_types.h"
#include "sdk/provider/scalar_rows.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

constexpr bool fuses = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;

template <int32_t op, class X, class T>
void loop(void* dst, const void* const* src, int64_t n, MapContext&) {
  const X* x = static_cast<const X*>(src[0]);
  const T* y = static_cast<const T*>(src[1]);
  const T* z = static_cast<const T*>(src[2]);
  T* out = static_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i) out[i] = scalar::ternary_row(scalar::Op<op>(), x[i], y[i], z[i]);
}

// x ? y : z without a branch, because random conditions would be mispredicted.
template <class T>
void choose(void* dst, const void* const* src, int64_t n, MapContext&) {
  const auto* x = static_cast<const uint8_t*>(src[0]);
  const T* y = static_cast<const T*>(src[1]);
  const T* z = static_cast<const T*>(src[2]);
  T* out = static_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i) {
    const T mask = static_cast<T>(T{0} - static_cast<T>(x[i] != 0 ? 1 : 0));
    out[i] = static_cast<T>((y[i] & mask) | (z[i] & static_cast<T>(~mask)));
  }
}

template <int32_t op, class T>
constexpr MapFunction function_if_defined() {
  constexpr scalar::Domain domain = scalar::ternary_facts(op).domain;
  if constexpr (domain == scalar::Domain::COND) {
    if constexpr (std::is_unsigned_v<T> && !std::is_same_v<T, bool> && op == EP_TERNARY_where)
      return choose<T>;
    else if constexpr (std::is_unsigned_v<T>)
      return loop<op, bool, T>;
    else
      return nullptr;
  } else if constexpr (scalar::in_domain<T>(domain)) {
    return loop<op, T, T>;
  } else {
    return nullptr;
  }
}

template <class T>
MapFunction function_of(int32_t op) {
  switch (op) {
#define EP_TERNARY(name, id, domain, result, expression) \
  case id:                                               \
    return function_if_defined<id, T>();
#include "ep_api/scalar_ops.def"
#undef EP_TERNARY
    default: return nullptr;
  }
}

}  // namespace

MapFunction scalar_ternary_function(int32_t op, int32_t dtype) {
  return for_scalar_type<fuses>(dtype, [op](auto type) { return function_of<decltype(type)>(op); });
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

namespace {

MapFunction scalar_ternary_function(SimdLevel level, int32_t op, int32_t dtype) {
  if (dtype == EP_DTYPE_f64) level = SimdLevel::baseline;
  return TENON_CPU_DISPATCH(level, scalar_ternary_function)(op, dtype);
}

}  // namespace

MapKernel scalar_ternary_kernel(SimdLevel level, int32_t op, int32_t dtype) {
  return {scalar_ternary_function(level, op, dtype), dtype, 600, "simd", false};
}

}  // namespace tenon::provider::cpu
#endif
