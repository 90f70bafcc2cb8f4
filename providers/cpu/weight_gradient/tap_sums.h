// The kernel of the lanes method, per dispatch target. T is float or double.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// sums[t * lanes + l] += left * right, summed over `count` pixels of `lines` lines. A pixel is one vector. The vector
// of `right` for tap t is offsets[t] elements after the pixel's own.
template <class T>
struct TapSums {
  const T* left;
  const T* right;
  int64_t lines, count;
  int64_t left_line, right_line, left_step, right_step;  // elements between lines, and between pixels
  const int64_t* offsets;
  int64_t taps;
  T* sums;
};

template <class T>
struct TapKernel {
  int64_t lanes;
  void (*run)(const TapSums<T>& tile);
  // Copies `count` pixels of one vector each, `step` elements of the dtype apart, as T.
  void (*read)(T* to, const void* from, int64_t step, int64_t count);
};

// For pixels of the float `dtype`.
template <class T>
TapKernel<T> tap_kernel(SimdLevel level, int32_t dtype);

}  // namespace tenon::provider::cpu
