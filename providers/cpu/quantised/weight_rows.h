// Kernels that multiply f32 by a quantised matrix, one panel of 32 columns at a time.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

constexpr int32_t kPanelColumns = 32;
constexpr int32_t kFewRows = 4;    // most rows for which integers are converted while they are read
constexpr int32_t kManyRows = 12;  // rows of the largest tile over weights already converted to f32

// A panel of integers, stored in groups of four rows. An 8-bit group holds the first 16 columns, then the other 16;
// each column is a 32-bit word with one byte per row. A 4-bit group holds 16 such words; each byte has a column in its
// low half and the 16th column after it in its high half. Stored values are the integers minus `offset`, so they are
// not negative.
struct WeightPanel {
  const char* numbers;
  int64_t bytes;       // size of `numbers`
  int32_t bits;        // 4 or 8
  int32_t offset;      // -8 for i4, -128 for i8, else 0
  int64_t depth;       // rows
  int64_t block;       // rows that share a scale: a multiple of 8, or all rows
  const float* scale;  // [blocks, columns]; blocks are `scale_row` elements apart
  int64_t scale_row;
  const float* zero;  // laid out like `scale`; NULL: 0
  int64_t zero_row;
};

struct WeightKernels {
  // dst[r, c] = bias[c] + sum over k of x[r, k] * real(k, c), for at most kFewRows rows. `sums` [rows, blocks] are sums
  // of x.
  void (*few)(const WeightPanel& panel, const float* x, int64_t x_row, const float* sums, int32_t rows, float* dst,
              int64_t dst_row, const float* bias, int32_t columns);
  // out[k - begin, c] = real(k, c) for k in [begin, end).
  void (*reals)(const WeightPanel& panel, int64_t begin, int64_t end, float* out);
  // dst[r, c] += sum over k < depth of x[r, k] * w[k, c], for at most kManyRows rows.
  void (*many)(const float* x, int64_t x_row, const float* w, int64_t depth, int32_t rows, float* dst, int64_t dst_row,
               int32_t columns);
};
const WeightKernels& weight_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
