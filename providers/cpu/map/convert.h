// Blocks of elements from one type and stride to another: what stands between storage and the kernels.
//
// Every cast goes through a wide type that holds its source exactly (f32 for the narrow floats, i64 for bool and
// integers, u64, f64), so each value is rounded once.
#pragma once

#include <cstdint>

namespace tenon::provider::cpu {

// Moves n elements; strides in elements, 0 on the source repeats. No overlap.
using ConvertFunction = void (*)(void* dst, int64_t dst_stride, const void* src, int64_t src_stride, int64_t n);

// n elements that lie `stride` apart, into a row. Four at a time: counting costs as much as moving.
template <class T>
inline void gather(T* row, const T* from, int64_t stride, int64_t n) {
  int64_t i = 0;
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

// Same bits, any strides, by element size 1, 2, 4 or 8; NULL for others.
ConvertFunction move_elements(int32_t size);

// The wide type `dtype` is cast through; 0 for packed and unknown types.
int32_t wide_dtype(int32_t dtype);
// From `dtype` to its wide type, and from a wide type (f32, f64, i64, u64) to any.
ConvertFunction widen(int32_t dtype);
ConvertFunction narrow(int32_t wide, int32_t dtype);

// The type in which rows are computed on elements of `dtype`: f32 for the narrow floats, else itself.
int32_t compute_dtype(int32_t dtype);

}  // namespace tenon::provider::cpu
