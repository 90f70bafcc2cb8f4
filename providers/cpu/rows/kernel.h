// Kernels over one contiguous row of f32 or f64, per dispatch target. softmax and the norms use them.
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

// The kernels of the norms, over rows of T. Partial results of a long row are combined in double, so sums of millions
// of floats keep f32 precision. `dst` may be `src`.
template <class T>
struct NormKernels {
  // dst = (src - mean) * inv_std * scale + shift. `scale` and `shift` may be NULL. Returns mean and inv_std.
  void (*layer_norm)(T* dst, const T* src, const T* scale, const T* shift, int64_t n, double eps, bool stream,
                     T* out_mean, T* out_inv_std);
  // dst = src * inv_std * scale, inv_std = 1 / sqrt(mean(src * src) + eps). `scale` may be NULL. Returns inv_std.
  T (*rms_norm)(T* dst, const T* src, const T* scale, int64_t n, double eps, bool stream);
  // The mean of a row, and 1 / sqrt(variance + eps).
  void (*moments)(const T* src, int64_t n, double eps, T* out_mean, T* out_inv_std);
  // dst = (src - mean) * factor + shift
  void (*affine)(T* dst, const T* src, T mean, T factor, T shift, int64_t n, bool stream);
  // dst = (src - mean) * factor + shift. mean, factor and shift are vectors of n values (step 1) or single values (step
  // 0).
  void (*normalize)(T* dst, const T* src, const T* mean, const T* factor, const T* shift, int64_t step, int64_t n);
};
template <class T>
const NormKernels<T>& norm_kernels(SimdLevel level);
template <>
const NormKernels<float>& norm_kernels(SimdLevel level);
template <>
const NormKernels<double>& norm_kernels(SimdLevel level);

// Like NormKernels<float>::affine, over a row stored as f16 or bf16. NULL if the level has no vectors of them.
using NarrowAffine = void (*)(void* dst, const void* src, float mean, float factor, float shift, int64_t n);
NarrowAffine narrow_affine(SimdLevel level, int32_t dtype);

// The kernels of softmax, over rows of f32.
struct RowKernels {
  // dst = softmax(src), or log_softmax(src). `dst` may be `src`. With `stream`, the kernel writes dst past the cache;
  // dst must then not overlap `src` or `buffer`. `buffer` holds n floats.
  void (*softmax)(float* dst, const float* src, float* buffer, int64_t n, bool log, bool stream);
  // Like `softmax`, for at most `most_short_rows` consecutive short rows.
  void (*softmax_short_rows)(float* dst, const float* src, int64_t n, int64_t rows, bool log);
  // softmax of `rows` > 0 consecutive rows, written past the cache. n is a multiple of 16 and at most 4096; the address
  // `dst` is a multiple of 64; `buffer` holds 2 n floats.
  void (*softmax_rows)(float* dst, const float* src, float* buffer, int64_t n, int64_t rows);
};

const RowKernels& row_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
