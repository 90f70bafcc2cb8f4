// Kernels of a product of f32 by a quantised matrix in integers, exact but for one rounding of f32: 32 neighbours of a
// row become integers of 24 bits, the greatest of them as large as fits, and these are three digits of a byte.
#pragma once

#include <cstdint>

#include "providers/cpu/quantised/weight_rows.h"

namespace tenon::provider::cpu {

constexpr int64_t kDigitGroup = 32;  // neighbours that share a unit

// Of one row of x, one for each group.
struct DigitGroup {
  int8_t digits[3][kDigitGroup];  // the last is worth 65536
  int32_t starts[2][3];           // the sums of the digits times the offset of a panel, and 17 times that
  float unit[2];                  // what an integer of 1 stands for, and a sixteenth of it
};

struct DigitKernels {
  // Fills `groups` from x, of groups * kDigitGroup numbers. False where a number is no number, or so great or so small
  // that its unit would not be an ordinary float. `offset`: of the panels.
  bool (*split)(const float* x, int64_t groups, int32_t offset, DigitGroup* out) = nullptr;
  // As WeightKernels::few, and of one row columns may be those of two panels, one after the other. Depth and block of
  // a panel are multiples of kDigitGroup.
  void (*few)(const WeightPanel& panel, const DigitGroup* x, int64_t x_row, const float* sums, int32_t rows, float* dst,
              int64_t dst_row, const float* bias, int32_t columns) = nullptr;
};
// Without functions where the processor has no products of bytes.
DigitKernels digit_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
