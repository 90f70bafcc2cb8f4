// One pooling window over f32 with channels innermost, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// dst[c] = max over t of src[offsets[t] + c] (NaN if one is NaN), or the sum over t divided by `divisor`.
struct PoolWindow {
  const float* src;
  const int64_t* offsets;  // by tap: its offset in SRC, in elements
  int64_t taps;
  float* dst;
  int64_t channels;  // at least the lanes of a vector
  bool sums;         // true: sum; false: maximum
  float divisor;
  // If not NULL, receives the position of each maximum: place + o / channels for the tap at offset o. `channels` is
  // then a multiple of the vector length.
  int32_t* positions = nullptr;
  int64_t place = 0;
};

struct WindowKernel {
  void (*run)(const PoolWindow& window);
  int64_t lanes;
};
WindowKernel window_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
