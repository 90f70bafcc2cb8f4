// The transforms of Winograd's convolution F(2x2, 3x3), per dispatch target. There are 16 positions: the elements of a
// square of 4 x 4. Of each array that they stand in, `position` is the distance from one to the next, in elements.
#pragma once

#include <cstdint>

#include "providers/cpu/convolution/kernel.h"
#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// A square of 4 x 4 pixels of SRC.
struct WinogradSquare {
  const float* pixels[16];  // the channels of each
  float* dst;               // [position][channels]
  int64_t position;
  int64_t channels;
};

// Weights of a panel of columns.
struct WinogradWeights {
  const float* src;  // of each of 9 taps [depth, columns]
  int64_t tap;       // elements from tap to tap of SRC
  float* dst;        // [position][depth, columns]
  int64_t position;
  int64_t floats;  // depth * columns: whole vectors
};

// The results of a square: 2 x 2 pixels of DST.
struct WinogradResults {
  const float* sums;  // [position][columns of one or two whole vectors]
  int64_t position;
  const float* bias;   // NULL: none
  int64_t offsets[4];  // of each pixel in DST; -1: beyond it
  float* dst;
  int32_t columns;  // in DST
  Finish finish;
};

// The gradient of 2 x 2 results.
struct WinogradGradient {
  const float* pixels[4];  // the channels of each
  float* dst;              // [position][channels]
  int64_t position;
  int64_t channels;
};

// Sums of products of squares and gradients, of which each position has one.
struct WinogradSums {
  const float* sums;  // [position][floats]
  int64_t position;
  float* dst;  // of each of 9 taps [floats]
  int64_t tap;
  int64_t floats;  // whole vectors
};

struct WinogradKernels {
  void (*square)(const WinogradSquare& square);
  void (*weights)(const WinogradWeights& weights);
  // False, and nothing is stored, if a sum is infinite or NaN.
  bool (*results)(const WinogradResults& results);
  // What the gradients of results become, and then sums the gradients of weights: the transposes of `results` and
  // `weights`. False if a sum is infinite or NaN.
  void (*gradient)(const WinogradGradient& gradient);
  bool (*weight_sums)(const WinogradSums& sums);
};
WinogradKernels winograd_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
