// strided_copy: copies elements between two sets of strides, on as many threads as pay off.
#pragma once

#include <cstdint>
#include <span>

#include "providers/cpu/simd/level.h"
#include "sdk/provider/descriptor.h"

namespace tenon::provider::cpu {

struct StridedCopy {
  int32_t rank = 0;
  int32_t size = 0;  // bytes per element
  int64_t dims[8];
  int64_t dst_strides[8];  // in elements
  int64_t src_strides[8];
};

// Copies elements of `size` bytes with these dims and strides (in elements) to dense row-major order, or back. The rank
// is at most 8.
StridedCopy to_dense(int32_t size, std::span<const int64_t> dims, std::span<const int64_t> strides);
StridedCopy from_dense(int32_t size, std::span<const int64_t> dims, std::span<const int64_t> strides);

// Sorts the axes as in the destination, merges axes that both operands walk alike, then copies row by row. If source
// and destination have unit stride along different axes (a transpose), copies tile by tile. Every dim is positive; the
// rank is 0 to 8. Strides of the source may be negative or 0.
void strided_copy(StridedCopy copy, char* dst, const char* src, SimdLevel level, int32_t threads);

// Copies all elements of an operand to an operand with the same dims.
void copy_operand(int32_t size, const OperandShape& dst, char* to, const OperandShape& src, const char* from,
                  SimdLevel level, int32_t threads);

// True if the operands share bytes.
bool overlap(int32_t size, const OperandShape& dst, const char* to, const OperandShape& src, const char* from);

// True if elements that are neighbours in `dst` are neighbours in `src` too. If not, a kernel that walks `dst` would
// read single elements of `src`; it is faster to copy `src` to `dst` first and to work there.
bool has_neighbours_of(const OperandShape& dst, const OperandShape& src);

}  // namespace tenon::provider::cpu
