// The pooling windows of one plane, shared by pooling and its gradient.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sdk/provider/descriptor.h"

namespace tenon::provider::cpu {

// One plane with three spatial dims; absent dims have length 1.
struct Plane {
  int64_t src[3] = {1, 1, 1}, dst[3] = {1, 1, 1};
  int64_t src_strides[3] = {0, 0, 0}, dst_strides[3] = {0, 0, 0}, index_strides[3] = {0, 0, 0};
  int64_t kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0},
          pad_high[3] = {0, 0, 0};

  // For a pooling from `read` to `written`, each [n, c, ...]. strides_of_indices is NULL if there are no indices.
  Plane(const ep_pooling_attributes& attributes, const OperandShape& read, const OperandShape& written,
        const int64_t* strides_of_indices) {
    for (int32_t i = 0; i < attributes.spatial_rank; ++i) {
      const int32_t at = 3 - attributes.spatial_rank + i;
      src[at] = read.dims[2 + i];
      dst[at] = written.dims[2 + i];
      src_strides[at] = read.strides[2 + i];
      dst_strides[at] = written.strides[2 + i];
      if (strides_of_indices != nullptr) index_strides[at] = strides_of_indices[2 + i];
      kernel[at] = attributes.kernel[i];
      stride[at] = attributes.stride[i];
      dilation[at] = attributes.dilation[i];
      pad[at] = attributes.pad_low[i];
      pad_high[at] = attributes.pad_high[i];
    }
  }
};

// The taps [first, last) of a window at `position` that lie within the source.
struct TapRange {
  int64_t first, last;
};

inline TapRange taps_at(const Plane& p, int axis, int64_t position) {
  const int64_t start = position * p.stride[axis] - p.pad[axis];
  const int64_t d = p.dilation[axis];
  const int64_t first = start >= 0 ? 0 : (-start + d - 1) / d;
  const int64_t beyond = start >= p.src[axis] ? 0 : (p.src[axis] - start + d - 1) / d;
  return {std::min(first, p.kernel[axis]), std::min(beyond, p.kernel[axis])};
}

// The number of taps of a window at `position` that lie within the source or its padding.
inline int64_t padded_taps(const Plane& p, int axis, int64_t position) {
  const int64_t start = position * p.stride[axis];
  const int64_t length = p.src[axis] + p.pad[axis] + p.pad_high[axis];
  return std::min(p.kernel[axis], (length - start + p.dilation[axis] - 1) / p.dilation[axis]);
}

// The results [first, last) along the innermost axis for which tap `k` lies within the source.
inline TapRange results_of_tap(const Plane& p, int64_t k) {
  const int64_t offset = k * p.dilation[2] - p.pad[2];
  const int64_t first = offset >= 0 ? 0 : (-offset + p.stride[2] - 1) / p.stride[2];
  const int64_t beyond = offset >= p.src[2] ? 0 : (p.src[2] - offset + p.stride[2] - 1) / p.stride[2];
  return {std::min(first, p.dst[2]), std::min(beyond, p.dst[2])};
}

}  // namespace tenon::provider::cpu
