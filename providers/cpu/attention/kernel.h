// The kernels of attention over f32, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// The scores of some keys for the queries of one block, or what became of them: a row per key, a column per query. So
// what is done to a query is done in one lane, and no vector is ever summed up.
struct Scores {
  float* values;
  int64_t keys;
  int64_t columns;  // a multiple of AttentionKernels::lanes; also from row to row
};

// The greatest score of each column so far, the sum of the exponentials of its scores less the greatest, and by what
// the last block of keys reduced what came before it.
struct Running {
  float* most;
  float* sum;
  float* factor;
};

// One query beside keys that lie row by row.
struct Row {
  const float* query;
  const float* keys;    // a row of `width` values for each key
  const float* values;  // a row of `columns` values for each key
  int64_t key_row;
  int64_t value_row;
  int64_t count;  // of keys
  int64_t width;
  int64_t columns;
};

struct AttentionKernels {
  int32_t lanes;
  // dst[j, i] = src[i, j] * factor
  void (*transpose)(float* dst, int64_t dst_row, const float* src, int64_t src_row, int64_t rows, int64_t columns,
                    float factor);
  // values = cap * tanh(values / cap)
  void (*cap)(float* values, int64_t n, float cap);
  // values[j, q] += other[j, q], which lies alike; or other[j]
  void (*add)(const Scores& scores, const float* other);
  void (*add_to_keys)(const Scores& scores, const float* other);
  // -inf at row j where j is not within [low, high] of the column
  void (*mask)(const Scores& scores, const int32_t* low, const int32_t* high);
  // values = exp(values - most), with the greatest value of all blocks so far; true if a factor is not 1
  bool (*soften)(const Scores& scores, const Running& running);
  // values[c, q] *= factor[q], for `rows` rows of `columns`
  void (*scale)(float* values, int64_t rows, int64_t columns, const float* factor);
  // scores[j] = query * keys[j] * scale
  void (*row_scores)(const Row& row, float* scores, float scale);
  // as `soften`, for one query; returns the factor
  float (*row_soften)(float* scores, int64_t count, float* most, float* sum);
  void (*scale_row)(float* values, int64_t n, float factor);
  // dst = dst * factor + the sum of scores[j] * values[j]
  void (*row_sum)(const Row& row, const float* scores, float* dst, float factor);
};

const AttentionKernels& attention_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
