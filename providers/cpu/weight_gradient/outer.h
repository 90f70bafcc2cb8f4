// The kernel for products that sum over pixels, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// Equally spaced pixels: the offset of the first pixel in each operand, in elements.
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
  int64_t left_step, right_step;  // elements between pixels
  float* dst;                     // [rows, OuterKernels::columns]
  int32_t rows;                   // at most OuterKernels::rows
  int32_t columns;  // two vectors, one vector, or fewer columns (slow); in the last case the other columns of DST are
                    // undefined
  bool adds;        // true: DST holds a partial sum already
};

struct OuterKernels {
  void (*run)(const OuterTile& tile);
  int32_t rows;     // rows of the largest tile
  int32_t columns;  // columns of the largest tile: two vectors
};
OuterKernels outer_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
