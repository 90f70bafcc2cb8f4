// The tile of a product of bytes: u8 by i8, four products at a time, summed in i32.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

constexpr int32_t kDotColumns = 32;  // of a panel of weights
constexpr int32_t kDotRows = 14;     // of the largest tile

enum class DotResult : uint8_t { i32, f32, u8, i8 };

// Where sums go, and what becomes of them: corrected, scaled and stored.
struct DotResults {
  int32_t columns;             // that DST has: at most kDotColumns
  const int32_t* added;        // by column: what the zero points add to a sum
  const int32_t* weight_zero;  // by column, NULL: all 0; times the sum of a row it is subtracted
  DotResult result;
  const float* factor;  // by column: the sum is multiplied by it, where DST is not i32
  const float* bias;    // by column
  int32_t zero_point;   // of DST
  char* dst;
  int64_t dst_row;  // elements from row to row
};

// Neighbouring results: sums[r, c] = sum over t, p of src[t * rows + r][p] * weights[t, p, c].
struct DotTile : DotResults {
  const uint8_t* const* src;  // for each tap, for each row: `depth` bytes; i8 where `flips`
  const int8_t* weights;      // [taps, groups of 4 of the depth, columns, 4]; the last group is filled up with zeros
  int64_t taps;
  int64_t depth;
  int32_t rows;             // at most kDotRows
  bool flips;               // SRC is i8: 128 is added to its numbers
  bool reads_on;            // the bytes behind a row up to a multiple of 4 may be read
  const int32_t* row_sums;  // by row: the sum of its bytes, where `weight_zero` is not NULL
};

// The best kernel of this processor: avx512_vnni, or loops that the compiler turns into vectors.
using DotKernel = void (*)(const DotTile& tile);
DotKernel dot_kernel(SimdLevel level);

// The sum of `count` bytes; of i8 with 128 added to each.
int32_t sum_bytes(const uint8_t* bytes, int64_t count, bool flips);

}  // namespace tenon::provider::cpu
