// Kernels of a product of f32 by a quantised matrix, 32 columns (a panel) at a time.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

constexpr int32_t kPanelColumns = 32;
constexpr int32_t kFewRows = 4;    // that are multiplied by numbers as they are read
constexpr int32_t kManyRows = 12;  // of a tile by numbers that were made reals

// A panel of numbers, four rows after the other. Four rows of 8 bits are the first 16 columns, then the others, each a
// word with a byte per row. Of 4 bits they are 16 such words; a byte holds the numbers of a column and of the 16th one
// after it, in its high bits. What is stored is the number less `offset`, which is not negative.
struct WeightPanel {
  const char* numbers;
  int64_t bytes;       // of the numbers
  int32_t bits;        // 4 or 8
  int32_t offset;      // 0, of i4 -8, of i8 -128
  int64_t depth;       // rows
  int64_t block;       // rows that share a scale: a multiple of 8, or all
  const float* scale;  // [blocks, columns]; `scale_row` elements from block to block
  int64_t scale_row;
  const float* zero;  // the same, NULL: 0
  int64_t zero_row;
};

struct WeightKernels {
  // dst[r, c] = bias[c] + sum over k of x[r, k] * real(k, c) for at most kFewRows rows. `sums` [rows, blocks]: of x.
  void (*few)(const WeightPanel& panel, const float* x, int64_t x_row, const float* sums, int32_t rows, float* dst,
              int64_t dst_row, const float* bias, int32_t columns);
  // out[k - begin, c] = real(k, c) for k in [begin, end).
  void (*reals)(const WeightPanel& panel, int64_t begin, int64_t end, float* out);
  // dst[r, c] += sum over k < depth of x[r, k] * w[k, c] for at most kManyRows rows.
  void (*many)(const float* x, int64_t x_row, const float* w, int64_t depth, int32_t rows, float* dst, int64_t dst_row,
               int32_t columns);
};
const WeightKernels& weight_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
