// A window of pooling over f32 whose channels are innermost, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// dst[c] = the greatest src[offsets[t] + c], NaN if one is NaN; or their sum by `divisor`.
struct PoolWindow {
  const float* src;
  const int64_t* offsets;  // of the taps that lie within SRC, in elements
  int64_t taps;
  float* dst;
  int64_t channels;  // at least the lanes of a vector
  bool sums;         // else: the greatest
  float divisor;
  // Of the greatest, where it is asked for: the tap at offset o has the number place + o / channels, and the channels
  // are whole vectors.
  int32_t* positions = nullptr;
  int64_t place = 0;
};

struct WindowKernel {
  void (*run)(const PoolWindow& window);
  int64_t lanes;
};
WindowKernel window_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
