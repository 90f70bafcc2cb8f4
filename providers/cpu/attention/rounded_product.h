// Products of f32 matrices whose factors are rounded to bf16 and whose sums are f32, on AVX-512 BF16. Callers ask
// why_not_relaxed (onednn/relaxed.h) first.
#pragma once

#include <cstdint>

namespace tenon::provider::cpu {

// Two factors that follow each other in a sum, the first one in the low half.
using Bf16Pair = uint32_t;
constexpr int64_t pairs_of(int64_t factors) { return (factors + 1) / 2; }

// c[r, j] = the sum over p of a[r, p] * b[p, j], where the product of two pairs is a sum of two products. Denormal
// factors, products and sums count as 0.
struct PairProduct {
  const Bf16Pair* a;
  int64_t a_row, a_step;  // between rows, and between the pairs of a row
  const Bf16Pair* b;      // the pairs of one p are contiguous
  int64_t b_row;
  const float* bias;  // added to each row; NULL: none
  float* c;
  int64_t c_row;
  int64_t m, n, depth;  // n is 16, 32 or 48; depth counts pairs
  bool adds;            // c holds a partial sum, and `bias` is not read
};
void run(const PairProduct& product);

// Rounds n values to pairs of neighbours. A missing last value is 0.
void round_row(Bf16Pair* to, const float* from, int64_t n);

// Rounds a matrix to pairs of values in one column: row p of `to` holds rows 2p and 2p + 1. A missing last row is 0.
void round_rows(Bf16Pair* to, int64_t to_row, const float* from, int64_t from_row, int64_t rows, int64_t columns);

}  // namespace tenon::provider::cpu
