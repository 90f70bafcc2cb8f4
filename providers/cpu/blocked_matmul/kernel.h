// The kernels of a product in blocks, per dispatch target. T is the type of sums: float, double, or an unsigned integer
// in which sums wrap.
#pragma once

#include <cstdint>

#include "providers/cpu/elementwise/convert.h"
#include "providers/cpu/simd/level.h"
#include "sdk/provider/descriptor.h"

namespace tenon::provider::cpu {

// c = a * b, or c += a * b, for one strip of b: rows of BlockKernels::width columns, zeros after the last column.
template <class T>
struct StripProduct {
  const T* a;
  const T* b;
  T* c;
  int64_t m, n, k;  // n is at most the width of a strip
  int64_t a_row, a_column, b_row, c_row;
  bool adds;
};

template <class T>
struct BlockKernels {
  int64_t width;  // columns of a strip
  void (*product)(const StripProduct<T>& product);
  // Copies n elements of a row, a multiple of `width`, to strips that are `step` apart.
  void (*spread)(T* to, int64_t step, const T* row, int64_t n);
  // to[j * to_row + i] = from[i * from_row + j] for `rows` x `columns` elements.
  void (*transpose)(T* to, int64_t to_row, const T* from, int64_t from_row, int64_t rows, int64_t columns);
};

template <class T>
BlockKernels<T> block_kernels(SimdLevel level);

// c += a * b for few rows. The rows of b are contiguous, of a dtype of their own, and read in place.
template <class T>
struct ThinProduct {
  const T* a;
  const void* b;
  T* c;
  int64_t m, n, k;
  int64_t a_row, a_column, b_row, c_row;
};
template <class T>
using ThinKernel = void (*)(const ThinProduct<T>& product);

// NULL if there is no kernel for a matrix b of `dtype`.
template <class T>
ThinKernel<T> thin_kernel(SimdLevel level, int32_t dtype);

// Converts between an integer dtype and the unsigned integer of `bytes` bytes, modulo its range. Both strides are 1.
// NULL if `dtype` is not an integer.
ConvertFunction integer_read(SimdLevel level, int32_t dtype, int32_t bytes);
ConvertFunction integer_write(SimdLevel level, int32_t bytes, int32_t dtype);

// Calls f.operator()<T>(), where T is the type in which a matmul of `dtype` adds: float, double, or an unsigned integer
// of at least 16 bits, in which sums wrap.
template <class F>
auto with_sum_type(int32_t dtype, const F& f) {
  if (wide_dtype(dtype) == EP_DTYPE_f32) return f.template operator()<float>();
  if (dtype == EP_DTYPE_f64) return f.template operator()<double>();
  if (dtype_size(dtype) <= 2) return f.template operator()<uint16_t>();
  if (dtype_size(dtype) == 4) return f.template operator()<uint32_t>();
  return f.template operator()<uint64_t>();
}

}  // namespace tenon::provider::cpu
