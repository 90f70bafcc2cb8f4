// strided_copy: copies elements from one set of strides to another, on as many threads as the work pays for.
#pragma once

#include <cstdint>
#include <span>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

struct StridedCopy {
  int32_t rank = 0;
  int32_t size = 0;  // bytes per element
  int64_t dims[8];
  int64_t dst_strides[8];  // in elements
  int64_t src_strides[8];
};

// The copy of elements of `size` bytes and these dims and strides (in elements) to where they lie densely, row-major;
// and the way back. The rank is at most 8.
StridedCopy to_dense(int32_t size, std::span<const int64_t> dims, std::span<const int64_t> strides);
StridedCopy from_dense(int32_t size, std::span<const int64_t> dims, std::span<const int64_t> strides);

// Puts axes in the order of the destination, merges those that both walk alike, then copies: row by row, or tile by
// tile if source and destination have unit stride along different axes (a transpose). Every dim is positive; the rank
// is 0 to 8.
void strided_copy(StridedCopy copy, char* dst, const char* src, SimdLevel level, int32_t threads);

}  // namespace tenon::provider::cpu
