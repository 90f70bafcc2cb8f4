// Converts blocks of elements between types and strides, from storage to the kernels and back.
//
// A cast without a conversion of its own passes through a wide type that holds the source value exactly: f32 for narrow
// floats, i64 for bool and most integers, u64 and f64 for themselves. So each value is rounded once.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// Converts n elements. Strides are in elements; a source stride of 0 repeats one element. `dst` and `src` do not
// overlap.
using ConvertFunction = void (*)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t n);

// Copies n elements with distance `stride` into a row that does not overlap them. Long runs with a step of 2 have a
// loop of their own, which compilers vectorise. Other strides copy four elements per iteration, because loop overhead
// costs as much as the copy.
template <class T>
inline void gather(T* __restrict row, const T* __restrict from, int64_t stride, int64_t n) {
  int64_t i = 0;
  if (stride == 2 && sizeof(T) <= 4 && n >= 32) {
    for (; i < n; ++i) row[i] = from[2 * i];
    return;
  }
  for (; i + 4 <= n; i += 4) {
    const T* at = from + i * stride;
    const T a = at[0];
    const T b = at[stride];
    const T c = at[2 * stride];
    const T d = at[3 * stride];
    row[i] = a;
    row[i + 1] = b;
    row[i + 2] = c;
    row[i + 3] = d;
  }
  for (; i < n; ++i) row[i] = from[i * stride];
}

// Copies elements of 1, 2, 4 or 8 bytes as bits. NULL for other sizes.
ConvertFunction move_elements(int32_t size);

// The wide type through which `dtype` is cast. 0 for packed and unknown types.
int32_t wide_dtype(int32_t dtype);
// `widen` converts from `dtype` to its wide type. `narrow` converts from a wide type (f32, f64, i64, u64) or from bool,
// i8, u8 or i32 to any dtype, and with vectors between most types; else it is NULL. All levels give the same bits.
ConvertFunction widen(int32_t dtype, SimdLevel level = SimdLevel::baseline);
ConvertFunction narrow(int32_t from, int32_t dtype, SimdLevel level = SimdLevel::baseline);

// The type in which scalar functions compute elements of `dtype`: f32 for narrow floats, else `dtype` itself.
int32_t compute_dtype(int32_t dtype);

}  // namespace tenon::provider::cpu
