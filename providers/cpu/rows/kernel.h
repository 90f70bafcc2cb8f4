// Kernels over one contiguous row of f32, per dispatch target. softmax and the norms use them.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// Kernels write larger results past the cache.
inline constexpr int64_t stream_bytes = 16 * 1024 * 1024;

// Copies n floats past the cache. The writing thread calls store_fence before another thread reads them.
using StreamCopy = void (*)(float* dst, const float* src, int64_t n);
StreamCopy stream_copy_kernel(SimdLevel level);
void store_fence();

// Rows of at most this many elements are short.
inline constexpr int64_t short_row_length = 256;
inline constexpr int64_t most_short_rows = 16;

// Partial results of a long row are combined in double, so sums of millions of floats keep f32 precision.
struct RowKernels {
  // dst = softmax(src), or log_softmax(src). `dst` may be `src`. With `stream`, the kernel writes dst past the cache;
  // dst must then not overlap `src` or `buffer`. `buffer` holds n floats.
  void (*softmax)(float* dst, const float* src, float* buffer, int64_t n, bool log, bool stream);
  // Like `softmax`, for at most `most_short_rows` consecutive short rows.
  void (*softmax_short_rows)(float* dst, const float* src, int64_t n, int64_t rows, bool log);
  // softmax of `rows` > 0 consecutive rows, written past the cache. n is a multiple of 16 and at most 4096; the address
  // `dst` is a multiple of 64; `buffer` holds 2 n floats.
  void (*softmax_rows)(float* dst, const float* src, float* buffer, int64_t n, int64_t rows);
  // dst = (src - mean) * inv_std * scale + shift. `scale` and `shift` may be NULL. Returns mean and inv_std.
  void (*layer_norm)(float* dst, const float* src, const float* scale, const float* shift, int64_t n, double eps,
                     bool stream, float* out_mean, float* out_inv_std);
  // dst = src * inv_std * scale, inv_std = 1 / sqrt(mean(src * src) + eps). `scale` may be NULL. Returns inv_std.
  float (*rms_norm)(float* dst, const float* src, const float* scale, int64_t n, double eps, bool stream);
  // The mean of a row, and 1 / sqrt(variance + eps).
  void (*moments)(const float* src, int64_t n, double eps, float* out_mean, float* out_inv_std);
  // dst = (src - mean) * factor + shift
  void (*affine)(float* dst, const float* src, float mean, float factor, float shift, int64_t n, bool stream);
  // dst = (src - mean) * factor + shift. mean, factor and shift are vectors of n values (step 1) or single values (step
  // 0).
  void (*normalize)(float* dst, const float* src, const float* mean, const float* factor, const float* shift,
                    int64_t step, int64_t n);
};

const RowKernels& row_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
