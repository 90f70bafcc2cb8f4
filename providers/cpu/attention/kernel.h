// The kernels of attention, per dispatch target. T is float or double.
#pragma once

#include <cstdint>
#include <type_traits>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// The number of a key within a block; as wide as T, so that vectors of both have equally many lanes.
template <class T>
using KeyIndex = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// A block of scores: a row per key, a column per query. Each query occupies one lane, so no step sums across a vector.
template <class T>
struct Scores {
  T* values;
  int64_t keys;
  int64_t columns;  // a multiple of AttentionKernels::lanes; also the distance between rows
};

// Running state of each column: the greatest score so far, the sum of exp(score - greatest), and the factor by which
// the last block of keys scaled the earlier sums.
template <class T>
struct Running {
  T* most;
  T* sum;
  T* factor;
};

// One query, and the keys and values that it reads row by row.
template <class T>
struct Row {
  const T* query;
  const T* keys;    // a row of `width` values for each key
  const T* values;  // a row of `columns` values for each key
  int64_t key_row;
  int64_t value_row;
  int64_t count;  // number of keys
  int64_t width;
  int64_t columns;
};

template <class T>
struct AttentionKernels {
  int32_t lanes;
  // dst[j, i] = src[i, j] * factor
  void (*transpose)(T* dst, int64_t dst_row, const T* src, int64_t src_row, int64_t rows, int64_t columns, T factor);
  // values = cap * tanh(values / cap)
  void (*cap)(T* values, int64_t n, T cap);
  // values[j, q] += other[j, q] (same layout), or other[j] for every q
  void (*add)(const Scores<T>& scores, const T* other);
  void (*add_to_keys)(const Scores<T>& scores, const T* other);
  // Sets row j to -inf where j is outside [low, high] of the column.
  void (*mask)(const Scores<T>& scores, const KeyIndex<T>* low, const KeyIndex<T>* high);
  // values = exp(values - most), where `most` is the greatest value of all blocks so far. True if a factor is not 1.
  bool (*soften)(const Scores<T>& scores, const Running<T>& running);
  // values[c, q] *= factor[q], for `rows` rows of `columns`
  void (*scale)(T* values, int64_t rows, int64_t columns, const T* factor);
  // scores[j] = query * keys[j] * scale
  void (*row_scores)(const Row<T>& row, T* scores, T scale);
  // Like `soften`, for one query. Returns the factor.
  T (*row_soften)(T* scores, int64_t count, T* most, T* sum);
  void (*scale_row)(T* values, int64_t n, T factor);
  // dst = dst * factor + the sum of scores[j] * values[j]
  void (*row_sum)(const Row<T>& row, const T* scores, T* dst, T factor);
};

template <class T>
const AttentionKernels<T>& attention_kernels(SimdLevel level);
template <>
const AttentionKernels<float>& attention_kernels(SimdLevel level);
template <>
const AttentionKernels<double>& attention_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
