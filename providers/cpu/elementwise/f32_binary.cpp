// The binary and ternary scalar functions over f32, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/elementwise/f32_binary.cpp"
#include "hwy/foreach_target.h"
//
#include "providers/cpu/simd/scalar_ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {

MapFunction binary_function(int32_t op) {
  switch (op) {
#define EP_BINARY(name, id, domain, result, check, expression) \
  case id:                                                     \
    return binary_loop<id>;
#include "ep_api/scalar_ops.def"
#undef EP_BINARY
    default: return nullptr;
  }
}

MapFunction ternary_function(int32_t op) {
  switch (op) {
#define EP_TERNARY(name, id, domain, result, expression) \
  case id:                                               \
    return ternary_loop<id>;
#include "ep_api/scalar_ops.def"
#undef EP_TERNARY
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

MapKernel f32_binary_kernel(SimdLevel level, int32_t op) {
  const scalar::RowFacts facts = scalar::binary_facts(op);
  if (!facts.known || !scalar::defined_on(facts.domain, EP_DTYPE_f32)) return {};
  MapFunction function = TENON_CPU_DISPATCH(level, binary_function)(op);
  return {function, facts.bool_result ? EP_DTYPE_bool : EP_DTYPE_f32, 400, "simd", !facts.bool_result, true};
}

MapKernel f32_ternary_kernel(SimdLevel level, int32_t op) {
  const scalar::RowFacts facts = scalar::ternary_facts(op);
  if (!facts.known || !scalar::defined_on(facts.domain, EP_DTYPE_f32) || facts.domain == scalar::Domain::COND)
    return {};
  return {TENON_CPU_DISPATCH(level, ternary_function)(op), EP_DTYPE_f32, 500, "simd", true};
}

}  // namespace tenon::provider::cpu
#endif
