// The kernels of attention over f32, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// A block of scores: a row per key, a column per query. Each query occupies one lane, so no step sums across a vector.
struct Scores {
  float* values;
  int64_t keys;
  int64_t columns;  // a multiple of AttentionKernels::lanes; also the distance between rows
};

// Running state of each column: the greatest score so far, the sum of exp(score - greatest), and the factor by which
// the last block of keys scaled the earlier sums.
struct Running {
  float* most;
  float* sum;
  float* factor;
};

// One query, and the keys and values that it reads row by row.
struct Row {
  const float* query;
  const float* keys;    // a row of `width` values for each key
  const float* values;  // a row of `columns` values for each key
  int64_t key_row;
  int64_t value_row;
  int64_t count;  // number of keys
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
  // values[j, q] += other[j, q] (same layout), or other[j] for every q
  void (*add)(const Scores& scores, const float* other);
  void (*add_to_keys)(const Scores& scores, const float* other);
  // Sets row j to -inf where j is outside [low, high] of the column.
  void (*mask)(const Scores& scores, const int32_t* low, const int32_t* high);
  // values = exp(values - most), where `most` is the greatest value of all blocks so far. True if a factor is not 1.
  bool (*soften)(const Scores& scores, const Running& running);
  // values[c, q] *= factor[q], for `rows` rows of `columns`
  void (*scale)(float* values, int64_t rows, int64_t columns, const float* factor);
  // scores[j] = query * keys[j] * scale
  void (*row_scores)(const Row& row, float* scores, float scale);
  // Like `soften`, for one query. Returns the factor.
  float (*row_soften)(float* scores, int64_t count, float* most, float* sum);
  void (*scale_row)(float* values, int64_t n, float factor);
  // dst = dst * factor + the sum of scores[j] * values[j]
  void (*row_sum)(const Row& row, const float* scores, float* dst, float factor);
};

const AttentionKernels& attention_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
