// The unary scalar functions over f32 and f64, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/elementwise/vector_unary.cpp"
#include "hwy/foreach_target.h"
//
#include "providers/cpu/simd/scalar_ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {

template <class T>
MapFunction unary_function_of(int32_t op) {
  switch (op) {
#define EP_UNARY(name, id, domain, result, expression) \
  case id:                                             \
    return unary_loop<id, T>;
#include "ep_api/scalar_ops.def"
#undef EP_UNARY
    default: return nullptr;
  }
}

MapFunction unary_function(int32_t op, bool wide) {
  if (!wide) return unary_function_of<float>(op);
  if constexpr (has_wide_rows)
    return unary_function_of<double>(op);
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

MapKernel vector_unary_kernel(SimdLevel level, int32_t op, int32_t dtype) {
  const scalar::RowFacts facts = scalar::unary_facts(op);
  const bool wide = dtype == EP_DTYPE_f64;
  if (!facts.known || !scalar::defined_on(facts.domain, dtype)) return {};
  MapFunction function = TENON_CPU_DISPATCH(level, unary_function)(op, wide);
  // If a region takes several times its estimate, the lease assumes that other programs disturb it.
  const bool is_long = op == EP_UNARY_lgamma || op == EP_UNARY_digamma;
  const int32_t picoseconds = (wide ? 800 : 400) * (is_long ? 10 : 1);
  return {function, facts.bool_result ? EP_DTYPE_bool : dtype, picoseconds, "simd", !facts.bool_result};
}

}  // namespace tenon::provider::cpu
#endif
