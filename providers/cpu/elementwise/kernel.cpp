#include "providers/cpu/elementwise/kernel.h"

#include "ep_api/ep_api.h"

namespace tenon::provider::cpu {

namespace {

bool has_vectors(int32_t dtype) { return dtype == EP_DTYPE_f32 || dtype == EP_DTYPE_f64; }

}  // namespace

MapKernel unary_kernel(SimdLevel level, int32_t op, int32_t dtype) {
  const MapKernel kernel = has_vectors(dtype) ? vector_unary_kernel(level, op, dtype) : MapKernel{};
  return kernel.function != nullptr ? kernel : scalar_unary_kernel(level, op, dtype);
}

MapKernel binary_kernel(SimdLevel level, int32_t op, int32_t dtype) {
  const MapKernel kernel = has_vectors(dtype) ? vector_binary_kernel(level, op, dtype) : MapKernel{};
  return kernel.function != nullptr ? kernel : scalar_binary_kernel(level, op, dtype);
}

MapKernel ternary_kernel(SimdLevel level, int32_t op, int32_t dtype) {
  const MapKernel kernel = has_vectors(dtype) ? vector_ternary_kernel(level, op, dtype) : MapKernel{};
  return kernel.function != nullptr ? kernel : scalar_ternary_kernel(level, op, dtype);
}

}  // namespace tenon::provider::cpu
