// The unary scalar functions over f32, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/elementwise/f32_unary.cpp"
#include "hwy/foreach_target.h"
//
#include "providers/cpu/simd/scalar_ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {

MapFunction unary_function(int32_t op) {
  switch (op) {
#define EP_UNARY(name, id, domain, result, expression) \
  case id:                                             \
    return unary_loop<id>;
#include "ep_api/scalar_ops.def"
#undef EP_UNARY
    default: return nullptr;
  }
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "ep_api/ep_api.h"
#include "providers/cpu/simd/dispatch.h"
#include "sdk/provider/scalar_rows.h"

namespace tenon::provider::cpu {

MapKernel f32_unary_kernel(SimdLevel level, int32_t op) {
  const scalar::RowFacts facts = scalar::unary_facts(op);
  if (!facts.known || !scalar::defined_on(facts.domain, EP_DTYPE_f32)) return {};
  MapFunction function = TENON_CPU_DISPATCH(level, unary_function)(op);
  return {function, facts.bool_result ? EP_DTYPE_bool : EP_DTYPE_f32, 400, "simd", !facts.bool_result};
}

}  // namespace tenon::provider::cpu
#endif
