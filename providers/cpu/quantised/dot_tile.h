// The tile of a byte product: u8 times i8, four products per instruction, summed in i32.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

constexpr int32_t kDotColumns = 32;  // per panel of weights
constexpr int32_t kDotRows = 14;     // rows of the largest tile

enum class DotResult : uint8_t { i32, f32, u8, i8 };

// How sums become results: they are corrected, scaled and stored.
struct DotResults {
  int32_t columns;             // columns of DST, at most kDotColumns
  const int32_t* added;        // by column: the correction for the zero points, added to the sum
  const int32_t* weight_zero;  // by column, or NULL if all are 0: times the row's sum, it is subtracted
  DotResult result;
  const float* factor;  // by column: the scale of the sum; ignored if DST is i32
  const float* bias;    // indexed by column
  int32_t zero_point;   // the zero point of DST
  char* dst;
  int64_t dst_row;  // elements between rows
};

// Adjacent results: sums[r, c] = sum over t, p of src[t * rows + r][p] * weights[t, p, c].
struct DotTile : DotResults {
  const uint8_t* const* src;  // for each tap and row: `depth` bytes; i8 if `flips`
  const int8_t* weights;      // [taps, groups of 4 along the depth, columns, 4]; the last group is padded with 0
  int64_t taps;
  int64_t depth;
  int32_t rows;             // at most kDotRows
  bool flips;               // SRC is i8, so 128 is added to each value
  bool reads_on;            // the bytes after a row, up to a multiple of 4, are readable
  const int32_t* row_sums;  // by row: the sum of its bytes; only if `weight_zero` is not NULL
};

// The fastest kernel: avx512_vnni, AVX-VNNI, AVX2, or loops that the compiler vectorises.
using DotKernel = void (*)(const DotTile& tile);
DotKernel dot_kernel(SimdLevel level);

// Returns the sum of `count` bytes; with `flips`, i8 values plus 128 each.
int32_t sum_bytes(const uint8_t* bytes, int64_t count, bool flips);

}  // namespace tenon::provider::cpu
