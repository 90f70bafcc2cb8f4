// The kernel of a small product, compiled once per dispatch target. A tile of the result stays in registers while the
// loop processes the rows of b. Nothing is packed.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/small_matmul/product.cpp"
#include "hwy/foreach_target.h"
//
#include <type_traits>

#include "hwy/highway.h"
#include "providers/cpu/small_matmul/kernel.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class V>
HWY_INLINE V multiply_add(V x, V y, V sum) {
  if constexpr (std::is_floating_point_v<hn::TFromV<V>>) {
    return hn::MulAdd(x, y, sum);
  } else {
    return hn::Add(sum, hn::Mul(x, y));
  }
}

// Computes kRows rows by kVectors vectors of the result, starting at row i and column j.
template <int kRows, int kVectors, class D, class T>
HWY_INLINE void tile(D d, const Product<T>& p, int64_t i, int64_t j) {
  using V = hn::Vec<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kRows][kVectors];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = p.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, p.bias + (i + r) * p.bias_row + j + v * lanes);
    }
  }
  const T* a = p.a + i * p.a_row;
  const T* b = p.b + j;
  for (int64_t step = 0; step < p.k; ++step, a += p.a_column, b += p.b_row) {
    V right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = hn::LoadU(d, b + v * lanes);
    for (int r = 0; r < kRows; ++r) {
      const V left = hn::Set(d, a[r * p.a_row]);
      for (int v = 0; v < kVectors; ++v) sum[r][v] = multiply_add(left, right[v], sum[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], d, p.c + (i + r) * p.c_row + j + v * lanes);
  }
}

// Computes as many strips of kVectors vectors as fit from column j on, and returns the first remaining column. A tile
// has kRows x kVectors sums, enough to hide the latency of an addition.
template <int kRows, int kVectors, class D, class T>
HWY_INLINE int64_t strips(D d, const Product<T>& p, int64_t j) {
  const int64_t width = kVectors * static_cast<int64_t>(hn::Lanes(d));
  for (; j + width <= p.n; j += width) {
    int64_t i = 0;
    for (; i + kRows <= p.m; i += kRows) tile<kRows, kVectors>(d, p, i, j);
    if constexpr (kRows > 4) {
      for (; i + 4 <= p.m; i += 4) tile<4, kVectors>(d, p, i, j);
    }
    for (; i < p.m; ++i) tile<1, kVectors>(d, p, i, j);
  }
  return j;
}

template <class T>
void product(const Product<T>& p) {
  const hn::ScalableTag<T> full;
  int64_t j = 0;
  if constexpr (HWY_TARGET == HWY_AVX3) {  // 32 registers
    j = strips<4, 4>(full, p, j);
    j = strips<6, 3>(full, p, j);
    j = strips<8, 2>(full, p, j);
  } else {  // 16 registers
    j = strips<4, 2>(full, p, j);
  }
  j = strips<8, 1>(full, p, j);
  j = strips<8, 1>(hn::CappedTag<T, 16 / sizeof(T)>(), p, j);
  strips<8, 1>(hn::CappedTag<T, 1>(), p, j);
}

}  // namespace

ProductKernel<float> product_of_f32() { return product<float>; }
ProductKernel<double> product_of_f64() { return product<double>; }
ProductKernel<uint16_t> product_of_u16() { return product<uint16_t>; }
ProductKernel<uint32_t> product_of_u32() { return product<uint32_t>; }
ProductKernel<uint64_t> product_of_u64() { return product<uint64_t>; }

}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

template <>
ProductKernel<float> product_kernel(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, product_of_f32)();
}
template <>
ProductKernel<double> product_kernel(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, product_of_f64)();
}
template <>
ProductKernel<uint16_t> product_kernel(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, product_of_u16)();
}
template <>
ProductKernel<uint32_t> product_kernel(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, product_of_u32)();
}
template <>
ProductKernel<uint64_t> product_kernel(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, product_of_u64)();
}

}  // namespace tenon::provider::cpu
#endif
