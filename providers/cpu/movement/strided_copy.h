// strided_copy: elements of one shape from one set of strides to another, by size, on as many threads as pay.
#pragma once

#include <cstdint>

namespace tenon::provider::cpu {

struct StridedCopy {
  int32_t rank = 0;
  int32_t size = 0;  // bytes per element
  int64_t dims[8];
  int64_t dst_strides[8];  // in elements
  int64_t src_strides[8];
};

// Folds axes that both walk as one, then moves: in rows, or in tiles where source and destination have different unit
// axes (a transpose). Dims are > 0, rank 0 to 8.
void strided_copy(StridedCopy copy, char* dst, const char* src, int32_t threads);

}  // namespace tenon::provider::cpu
