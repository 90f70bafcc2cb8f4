// The unary scalar functions for every type except f32.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/elementwise/scalar_unary.cpp"
#include "hwy/foreach_target.h"
//
#include <cstring>

#include "ep_api/ep_api.h"
#include "hwy/highway.h"
#include "providers/cpu/elementwise/kernel.h"
#include "providers/cpu/elementwise/scalar_types.h"
#include "sdk/provider/scalar_rows.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

constexpr bool fuses = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;

template <int32_t op, class T>
void loop(void* dst, const void* const* src, int64_t n, MapContext& context) {
  T a;
  T b;
  std::memcpy(&a, context.a, sizeof a);
  std::memcpy(&b, context.b, sizeof b);
  using R = decltype(scalar::unary_row(scalar::Op<op>(), a, a, b));
  const T* x = static_cast<const T*>(src[0]);
  R* out = static_cast<R*>(dst);
  for (int64_t i = 0; i < n; ++i) out[i] = scalar::unary_row(scalar::Op<op>(), x[i], a, b);
}

template <int32_t op, class T>
constexpr MapFunction function_if_defined() {
  if constexpr (scalar::in_domain<T>(scalar::unary_facts(op).domain))
    return loop<op, T>;
  else
    return nullptr;
}

template <class T>
MapFunction function_of(int32_t op) {
  switch (op) {
#define EP_UNARY(name, id, domain, result, expression) \
  case id:                                             \
    return function_if_defined<id, T>();
#include "ep_api/scalar_ops.def"
#undef EP_UNARY
    default: return nullptr;
  }
}

}  // namespace

MapFunction scalar_unary_function(int32_t op, int32_t dtype) {
  return for_scalar_type<fuses>(dtype, [op](auto type) { return function_of<decltype(type)>(op); });
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

namespace {

MapFunction scalar_unary_function(SimdLevel level, int32_t op, int32_t dtype) {
  if (dtype == EP_DTYPE_f64) level = SimdLevel::baseline;
  return TENON_CPU_DISPATCH(level, scalar_unary_function)(op, dtype);
}

}  // namespace

MapKernel scalar_unary_kernel(SimdLevel level, int32_t op, int32_t dtype) {
  const scalar::RowFacts facts = scalar::unary_facts(op);
  const bool library_calls = facts.domain == scalar::Domain::FLOAT;  // the compiler vectorises the other functions
  return {scalar_unary_function(level, op, dtype), facts.bool_result ? EP_DTYPE_bool : dtype,
          library_calls ? 8000 : 1000, library_calls ? "plain" : "simd", false};
}

}  // namespace tenon::provider::cpu
#endif
