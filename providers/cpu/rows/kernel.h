// Kernels over one contiguous row of f32: what softmax, the norms and the reductions are made of, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// Results larger than this are written past the cache.
inline constexpr int64_t stream_bytes = 16 * 1024 * 1024;

// Copies n floats past the cache; before others read them the writing thread calls store_fence.
using StreamCopy = void (*)(float* dst, const float* src, int64_t n);
void store_fence();

// Partial results of a long row are combined in double, so that a sum of millions keeps f32's precision.
struct RowKernels {
  // dst = softmax(src), or its logarithm; `dst` may be `src`. With `stream` dst is written past the cache; it must then
  // not overlap `src` or `buffer`, which holds n floats.
  void (*softmax)(float* dst, const float* src, float* buffer, int64_t n, bool log, bool stream);
  // The same over `rows` > 0 rows that follow each other in both, written past the cache: n a multiple of 16 and at
  // most 4096, `dst` a multiple of 64, `buffer` of 2 n floats.
  void (*softmax_rows)(float* dst, const float* src, float* buffer, int64_t n, int64_t rows);
  // dst = (src - mean) * inv_std * scale + shift; scale and shift may be NULL. Gives mean and inv_std.
  void (*layer_norm)(float* dst, const float* src, const float* scale, const float* shift, int64_t n, double eps,
                     bool stream, float* out_mean, float* out_inv_std);
  // dst = (src - mean) * factor + shift, each of the three a vector of n or, with step 0, one value.
  void (*normalize)(float* dst, const float* src, const float* mean, const float* factor, const float* shift,
                    int64_t step, int64_t n);
  StreamCopy stream_copy;
};

const RowKernels& row_kernels(SimdLevel level);

// The reduction `op` over f32: of a block of at most 4096, and of rows element by element. Values are mapped, combined,
// not finished.
struct ReduceKernels {
  float (*block)(const float* src, int64_t n) = nullptr;
  void (*accumulate)(float* values, const float* src, int64_t n) = nullptr;  // values = combine(values, map(src))
  void (*merge)(float* values, const float* others, int64_t n) = nullptr;    // values = combine(values, others)
};

ReduceKernels reduce_kernels(SimdLevel level, int32_t op);

}  // namespace tenon::provider::cpu
