// Kernels that multiply f32 by a quantised matrix in integers, exact up to one f32 rounding. 32 adjacent elements of a
// row become 24-bit integers with a common unit, scaled by the largest of them, and each integer is split into three
// digits of a byte.
#pragma once

#include <cstdint>

#include "providers/cpu/quantised/weight_rows.h"

namespace tenon::provider::cpu {

constexpr int64_t kDigitGroup = 32;  // neighbours that share a unit

// One group of a row of x.
struct DigitGroup {
  int8_t digits[3][kDigitGroup];  // the last digit is worth 65536
  int32_t starts[2][3];           // the sums of the digits times the panel's offset, and 17 times that
  float unit[2];                  // the value of an integer 1, and a sixteenth of it
};

struct DigitKernels {
  // Fills `out` from groups * kDigitGroup elements of x. `offset` is the offset of the panels. Returns false if an
  // element is NaN or infinite, or so large or small that the unit would not be a normal float.
  bool (*split)(const float* x, int64_t groups, int32_t offset, DigitGroup* out) = nullptr;
  // Like WeightKernels::few. With one row, the columns may span two consecutive panels. Depth and block of a panel are
  // multiples of kDigitGroup.
  void (*few)(const WeightPanel& panel, const DigitGroup* x, int64_t x_row, const float* sums, int32_t rows, float* dst,
              int64_t dst_row, const float* bias, int32_t columns) = nullptr;
};
// The members are NULL if the processor has no byte products.
DigitKernels digit_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
