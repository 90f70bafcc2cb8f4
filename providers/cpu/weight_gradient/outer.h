// The kernel of products that sum over pixels, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// Pixels that lie at equal distances: where the first one is, in elements from the start of each operand.
struct OuterLine {
  int64_t left, right;
  int64_t count;
};

// sums[r, c] = sum over lines, p of left[line.left + p * left_step + r] * right[line.right + p * right_step + c].
struct OuterTile {
  const float* left;
  const float* right;
  const OuterLine* lines;
  int64_t line_count;
  int64_t left_step, right_step;  // elements from pixel to pixel
  float* dst;                     // [rows, OuterKernels::columns]
  int32_t rows;                   // at most OuterKernels::rows
  int32_t columns;                // two vectors, one, or fewer (slow): then no other column of DST counts
  bool adds;                      // DST has a part of each sum already
};

struct OuterKernels {
  void (*run)(const OuterTile& tile);
  int32_t rows;     // of the largest tile
  int32_t columns;  // of the largest tile: two vectors
};
OuterKernels outer_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
