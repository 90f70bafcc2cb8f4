#include "providers/cpu/elementwise/kernel.h"

#include "ep_api/ep_api.h"

namespace tenon::provider::cpu {

MapKernel unary_kernel(SimdLevel level, int32_t op, int32_t dtype) {
  return dtype == EP_DTYPE_f32 ? f32_unary_kernel(level, op) : scalar_unary_kernel(op, dtype);
}

MapKernel binary_kernel(SimdLevel level, int32_t op, int32_t dtype) {
  return dtype == EP_DTYPE_f32 ? f32_binary_kernel(level, op) : scalar_binary_kernel(op, dtype);
}

MapKernel ternary_kernel(SimdLevel level, int32_t op, int32_t dtype) {
  return dtype == EP_DTYPE_f32 ? f32_ternary_kernel(level, op) : scalar_ternary_kernel(op, dtype);
}

}  // namespace tenon::provider::cpu
