// The binary and ternary scalar functions over f32 and f64, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/elementwise/vector_binary.cpp"
#include "hwy/foreach_target.h"
//
#include "providers/cpu/simd/scalar_ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {

template <class T>
MapFunction binary_function_of(int32_t op) {
  switch (op) {
#define EP_BINARY(name, id, domain, result, check, expression) \
  case id:                                                     \
    return binary_loop<id, T>;
#include "ep_api/scalar_ops.def"
#undef EP_BINARY
    default: return nullptr;
  }
}

template <class T>
MapFunction ternary_function_of(int32_t op) {
  switch (op) {
#define EP_TERNARY(name, id, domain, result, expression) \
  case id:                                               \
    return ternary_loop<id, T>;
#include "ep_api/scalar_ops.def"
#undef EP_TERNARY
    default: return nullptr;
  }
}

MapFunction binary_function(int32_t op, bool wide) {
  if (!wide) return binary_function_of<float>(op);
  if constexpr (has_wide_rows)
    return binary_function_of<double>(op);
  else
    return nullptr;
}
MapFunction ternary_function(int32_t op, bool wide) {
  if (!wide) return ternary_function_of<float>(op);
  if constexpr (has_wide_rows)
    return ternary_function_of<double>(op);
  else
    return nullptr;
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ep_api/ep_api.h"
#include "providers/cpu/simd/dispatch.h"
#include "sdk/provider/scalar_rows.h"

namespace tenon::provider::cpu {

MapKernel vector_binary_kernel(SimdLevel level, int32_t op, int32_t dtype) {
  const scalar::RowFacts facts = scalar::binary_facts(op);
  const bool wide = dtype == EP_DTYPE_f64;
  if (!facts.known || !scalar::defined_on(facts.domain, dtype)) return {};
  MapFunction function = TENON_CPU_DISPATCH(level, binary_function)(op, wide);
  return {function, facts.bool_result ? EP_DTYPE_bool : dtype, wide ? 800 : 400, "simd", !facts.bool_result, true};
}

MapKernel vector_ternary_kernel(SimdLevel level, int32_t op, int32_t dtype) {
  const scalar::RowFacts facts = scalar::ternary_facts(op);
  const bool wide = dtype == EP_DTYPE_f64;
  if (!facts.known || !scalar::defined_on(facts.domain, dtype) || facts.domain == scalar::Domain::COND) return {};
  MapKernel kernel = {TENON_CPU_DISPATCH(level, ternary_function)(op, wide), dtype, wide ? 1000 : 500, "simd", true};
  kernel.takes_first_single = true;
  kernel.takes_two_scalars = true;
  return kernel;
}

}  // namespace tenon::provider::cpu
#endif
