// The kernels of a matrix-vector product, per dispatch target. T is the type of sums: float, double, or an unsigned
// integer in which sums wrap. E is the type of the matrix: T; for float also bf16, and f16 on AVX2 and AVX3; for
// uint16_t also uint8_t.
#pragma once

#include <cstdint>

#include "providers/cpu/elementwise/cast.h"
#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// Columns per panel of a packed bf16 matrix. Each row of a panel consists of 32-bit words: word i of the first 32
// columns holds column i in its low half and column 16 + i in its high half; the other 32 columns follow likewise.
constexpr int64_t kWordColumns = 64;

template <class T, class E = T>
struct VectorKernels {
  // y[i * step] = sum over p < k of a[i * row + p] * x[p], for every i < m. If `arrange` is given, it has arranged x.
  void (*rows)(T* y, int64_t step, const E* a, int64_t row, const T* x, int64_t m, int64_t k) = nullptr;
  // y[j] = sum over p < k of x[p] * b[p * row + j], for every j < n.
  void (*columns)(T* y, const E* b, int64_t row, const T* x, int64_t n, int64_t k) = nullptr;
  // y[0] = sum over p < k of a[p] * x[p]. NULL if E is T.
  void (*pair)(T* y, const E* a, const E* x, int64_t k) = nullptr;
  // Like `columns`, for all columns of a panel of k rows. NULL if E is not bf16.
  void (*panel)(T* y, const E* panel, const T* x, int64_t k) = nullptr;
  // Copies x in the order that `rows` expects. NULL: `rows` reads x as it is.
  void (*arrange)(T* to, const T* x, int64_t k) = nullptr;
};

template <class T, class E = T>
VectorKernels<T, E> vector_kernels(SimdLevel level);
template <>
VectorKernels<float> vector_kernels(SimdLevel level);
template <>
VectorKernels<double> vector_kernels(SimdLevel level);
template <>
VectorKernels<float, Bf16Bits> vector_kernels(SimdLevel level);
template <>
VectorKernels<float, F16Bits> vector_kernels(SimdLevel level);
template <>
VectorKernels<uint16_t, uint8_t> vector_kernels(SimdLevel level);
template <>
VectorKernels<uint16_t> vector_kernels(SimdLevel level);
template <>
VectorKernels<uint32_t> vector_kernels(SimdLevel level);
template <>
VectorKernels<uint64_t> vector_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
