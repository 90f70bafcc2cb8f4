// Kernels of reduce and arg_reduce, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// The loops of one reduction of scalar_ops.def, in T. They read stored elements, map them and combine them, but do not
// finish. For additions, results keep f32 precision if at most 4096 elements of a row (256 rows) are given per call.
template <class T>
struct ReduceKernels {
  // Returns the reduction of n elements.
  T (*block)(const void* src, int64_t n) = nullptr;
  // sums[j] = combine(sums[j], src[j], src[row_stride + j], ...) over `rows` rows, for every j < n.
  void (*columns)(T* sums, const void* src, int64_t row_stride, int64_t rows, int64_t n) = nullptr;
  // dst[i] = the reduction of the n elements at src + i * row_stride, for every i < rows. For narrow floats, n must be
  // at least `shortest_row`.
  void (*rows)(T* dst, const void* src, int64_t row_stride, int64_t rows, int64_t n) = nullptr;
};

inline constexpr int64_t shortest_row = 16;

// The kernels for elements of `dtype`: f32, f64, and on AVX2 and AVX3 also f16 and bf16, which are reduced in float.
// All members are NULL for other types.
template <class T>
ReduceKernels<T> reduce_kernels(SimdLevel level, int32_t op, int32_t dtype);
template <>
ReduceKernels<float> reduce_kernels(SimdLevel level, int32_t op, int32_t dtype);
template <>
ReduceKernels<double> reduce_kernels(SimdLevel level, int32_t op, int32_t dtype);

// The kernels for integers, which are reduced in their own type, whatever the number of elements per call.
template <class T>
ReduceKernels<T> integer_reduce_kernels(SimdLevel level, int32_t op);

// Returns the function that sets values[j] = finish(values[j], count) for every j < n.
void (*reduce_finish(SimdLevel level, int32_t op))(float* values, int64_t n, int64_t count);

// Position of the greatest or least element: the first if several are equal, or the last if `last`. NaN counts as
// beyond all numbers.
struct ArgReduceKernels {
  int64_t (*row)(const void* src, int64_t n, bool last) = nullptr;
  // positions[j] of the `rows` elements src[j], src[row_stride + j], ...; rows is at most 2^31 - 1.
  void (*columns)(int64_t* positions, const void* src, int64_t row_stride, int64_t rows, int64_t n,
                  bool last) = nullptr;
  // positions[i] of the n elements at src + i * row_stride, for every i < rows.
  void (*rows)(int64_t* positions, const void* src, int64_t row_stride, int64_t rows, int64_t n, bool last) = nullptr;
};

// The kernels for elements of `dtype`, for the types of reduce_kernels. All members are NULL for others. `columns` is
// given at most `most_arg_columns`.
ArgReduceKernels arg_reduce_kernels(SimdLevel level, bool greatest, int32_t dtype);
// The kernels for bool and integers.
ArgReduceKernels integer_arg_reduce_kernels(SimdLevel level, bool greatest, int32_t dtype);
inline constexpr int64_t most_arg_columns = 256;

}  // namespace tenon::provider::cpu
