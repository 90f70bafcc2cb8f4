// The kernel of a small product, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// c[i, j] = bias[i, j] + sum over p of a[i, p] * b[p, j], added in ascending order of p. Strides are in elements; the
// columns of b, c and bias are contiguous.
struct Product {
  const float* a;
  const float* b;
  const float* bias;  // NULL: none
  float* c;
  int64_t m, n, k;
  int64_t a_row, a_column, b_row, bias_row, c_row;
};

using ProductKernel = void (*)(const Product& product);

ProductKernel product_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
