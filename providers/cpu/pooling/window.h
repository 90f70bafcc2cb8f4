// One pooling window with channels innermost, per dispatch target and dtype. f16 and bf16 are computed in f32.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// Element c of the result combines elements src[offsets[t] + c] for t < taps.
struct PoolWindow {
  const void* src;
  const int64_t* offsets;  // by tap: its offset in SRC, in elements
  int64_t taps;
  void* dst;
  int64_t channels;
  double divisor = 1;
  // For maxima with positions: channel c gets position place + places[t], where t is the tap of its maximum, or -1
  // without taps. `places` has an entry per tap.
  int32_t* positions = nullptr;
  const int64_t* places = nullptr;
  int64_t place = 0;
};
using WindowFunction = void (*)(const PoolWindow& window);

struct WindowKernel {
  // NaN if an element is NaN. Without taps, the least value of the dtype.
  WindowFunction maximum = nullptr;
  // The first maximum, or the first NaN, and its position.
  WindowFunction maximum_with_positions = nullptr;
  // The rest is NULL for integers: the sum divided by `divisor`; the sum of magnitudes; the root of the sum of squares.
  WindowFunction average = nullptr, magnitudes = nullptr, norm = nullptr;
  // The most channels that fill one vector, and the fewest for which there is a vector.
  int64_t lanes = 1, fewest_lanes = 1;
};

// Without functions if `dtype` is not a number of 1, 2, 4 or 8 bytes.
WindowKernel window_kernel(SimdLevel level, int32_t dtype);

}  // namespace tenon::provider::cpu
