// Kernels of reduce and arg_reduce over f32 and f64, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// A reduction of scalar_ops.def in T. The kernels read elements as they are stored, map and combine
// them, and do not finish. A reduction that adds keeps the precision of f32 if no more than 4096 elements of a row (256
// rows) go through one call.
template <class T>
struct ReduceKernels {
  // The reduction of n elements.
  T (*block)(const void* src, int64_t n) = nullptr;
  // sums[j] = combine(sums[j], src[j], src[row_stride + j], ...) of `rows` rows, for every j < n.
  void (*columns)(T* sums, const void* src, int64_t row_stride, int64_t rows, int64_t n) = nullptr;
  // dst[i] = the reduction of the n elements at src + i * row_stride, for every i < rows. Of narrow floats n is at
  // least `shortest_row`.
  void (*rows)(T* dst, const void* src, int64_t row_stride, int64_t rows, int64_t n) = nullptr;
};

inline constexpr int64_t shortest_row = 16;

// The kernels that read elements of `dtype`: f32, f64, and on AVX2 and AVX3 f16 and bf16, which are reduced in float.
// All members are NULL for other types.
template <class T>
ReduceKernels<T> reduce_kernels(SimdLevel level, int32_t op, int32_t dtype);
template <>
ReduceKernels<float> reduce_kernels(SimdLevel level, int32_t op, int32_t dtype);
template <>
ReduceKernels<double> reduce_kernels(SimdLevel level, int32_t op, int32_t dtype);

// The function of the reduction that sets values[j] = finish(values[j], count) for every j < n.
void (*reduce_finish(SimdLevel level, int32_t op))(float* values, int64_t n, int64_t count);

// Positions of the greatest (or least) element: of several the first, or the last if `last`; NaN is beyond all numbers.
struct ArgReduceKernels {
  int64_t (*row)(const void* src, int64_t n, bool last) = nullptr;
  // positions[j] of the `rows` elements src[j], src[row_stride + j], ...; rows is at most 2^31 - 1.
  void (*columns)(int64_t* positions, const void* src, int64_t row_stride, int64_t rows, int64_t n,
                  bool last) = nullptr;
};

// The kernels that read elements of `dtype`: of the types that reduce_kernels has. All members are NULL for others.
ArgReduceKernels arg_reduce_kernels(SimdLevel level, bool greatest, int32_t dtype);

}  // namespace tenon::provider::cpu
