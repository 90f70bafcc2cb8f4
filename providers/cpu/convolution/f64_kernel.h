// The kernel of convolutions over f64, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

inline constexpr int32_t f64_strip_rows = 6;
inline constexpr int32_t f64_widest_strip = 16;

// dst[i * width + j] = sum over p of a[p * f64_strip_rows + i] * b[p * width + j], for i < rows and j < width.
struct F64Strip {
  const double* a;
  const double* b;
  double* dst;
  int64_t depth;
  int32_t rows;  // 1 to f64_strip_rows
  bool adds;     // true: adds the sums to dst
};

struct F64StripKernel {
  int32_t width;  // at most f64_widest_strip
  void (*run)(const F64Strip& strip);
};

F64StripKernel f64_strip_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
