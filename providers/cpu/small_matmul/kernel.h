// The kernel of a small product, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// c[i, j] = bias[i, j] + sum over p of a[i, p] * b[p, j], added in ascending order of p. Strides are in elements; the
// columns of b, c and bias are contiguous.
template <class T>
struct Product {
  const T* a;
  const T* b;
  const T* bias;  // NULL: none
  T* c;
  int64_t m, n, k;
  int64_t a_row, a_column, b_row, bias_row, c_row;
};

template <class T>
using ProductKernel = void (*)(const Product<T>& product);

// T is float, double, or an unsigned integer in which sums wrap.
template <class T>
ProductKernel<T> product_kernel(SimdLevel level);
template <>
ProductKernel<float> product_kernel(SimdLevel level);
template <>
ProductKernel<double> product_kernel(SimdLevel level);
template <>
ProductKernel<uint16_t> product_kernel(SimdLevel level);
template <>
ProductKernel<uint32_t> product_kernel(SimdLevel level);
template <>
ProductKernel<uint64_t> product_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
