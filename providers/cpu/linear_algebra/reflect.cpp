// QR of a small matrix with Householder reflections, compiled once per dispatch target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/linear_algebra/reflect.cpp"
#include "hwy/foreach_target.h"
//
#include "providers/cpu/linear_algebra/reflect-inl.h"
#include "providers/cpu/linear_algebra/reflect.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {

void qr_of(const SmallQr& x) {
  const int count = std::min(x.rows, x.columns);
  Columns room(x.rows, x.columns + count + x.q_columns);
  const int64_t stride = room.stride();
  float* const a = room.at(0);
  float* const vectors = room.at(x.columns);
  float* const q = room.at(x.columns + count);
  float taus[most_reflected];
  for (int j = 0; j < x.columns; ++j) std::copy_n(x.a + static_cast<int64_t>(j) * x.rows, x.rows, a + j * stride);
  for (int k = 0; k < count; ++k) {
    float* const v = vectors + k * stride;
    taus[k] = find_reflection(a + k * stride, k, x.rows, v);
    reflect_all(v, taus[k], a + (k + 1) * stride, stride, k, x.rows, x.columns - k - 1);
  }
  // Q is the product of the reflections. The last reflections are applied first, because they do not change earlier
  // columns.
  for (int j = 0; j < x.q_columns; ++j) q[j * stride + j] = 1;
  for (int k = count - 1; k >= 0; --k)
    reflect_all(vectors + k * stride, taus[k], q + k * stride, stride, k, x.rows, x.q_columns - k);
  for (int j = 0; j < x.columns; ++j) {
    std::copy_n(a + j * stride, std::min(j + 1, x.rows), x.a + static_cast<int64_t>(j) * x.rows);
  }
  for (int j = 0; j < x.q_columns; ++j) std::copy_n(q + j * stride, x.rows, x.q + static_cast<int64_t>(j) * x.rows);
}

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

QrKernel qr_kernel(SimdLevel level) { return TENON_CPU_DISPATCH(level, qr_of); }

}  // namespace tenon::provider::cpu
#endif
