// The transforms of Winograd's convolution F(2x2, 3x3), per dispatch target. The elements of a square of 4 x 4 are its
// 16 positions. In each array over positions, `position` is the distance between two of them, in elements.
#pragma once

#include <cstdint>

#include "providers/cpu/convolution/kernel.h"
#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// A square of 4 x 4 pixels of SRC.
struct WinogradSquare {
  const float* pixels[16];  // the channels of each pixel
  float* dst;               // [position][channels]
  int64_t position;
  int64_t channels;
};

// The weights of one panel of columns.
struct WinogradWeights {
  const float* src;  // for each of 9 taps [depth, columns]
  int64_t tap;       // elements between taps of `src`
  float* dst;        // [position][depth, columns]
  int64_t position;
  int64_t floats;  // depth * columns, a multiple of the vector length
};

// The results of a square: 2 x 2 pixels of DST.
struct WinogradResults {
  const float* sums;  // [position][columns], one or two whole vectors
  int64_t position;
  const float* bias;   // NULL: none
  int64_t offsets[4];  // by pixel: its offset in DST; -1: the pixel is outside DST
  float* dst;
  int32_t columns;  // columns in DST
  Finish finish;
};

// The gradient of 2 x 2 results.
struct WinogradGradient {
  const float* pixels[4];  // the channels of each pixel
  float* dst;              // [position][channels]
  int64_t position;
  int64_t channels;
};

// Sums of products of squares and gradients, one per position.
struct WinogradSums {
  const float* sums;  // [position][floats]
  int64_t position;
  float* dst;  // for each of 9 taps [floats]
  int64_t tap;
  int64_t floats;  // a multiple of the vector length
};

struct WinogradKernels {
  void (*square)(const WinogradSquare& square);
  void (*weights)(const WinogradWeights& weights);
  // Returns false and stores nothing if a sum is infinite or NaN.
  bool (*results)(const WinogradResults& results);
  // The transforms of the weight gradient, which are the transposes of `results` and `weights`: `gradient` transforms
  // gradients of results, and `weight_sums` turns sums into weight gradients. `weight_sums` returns false if a sum is
  // infinite or NaN.
  void (*gradient)(const WinogradGradient& gradient);
  bool (*weight_sums)(const WinogradSums& sums);
};
WinogradKernels winograd_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
