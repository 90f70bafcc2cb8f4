// The tile of a depthwise convolution of bytes: each channel has weights of its own. Four lines of the kernel are one
// product of four bytes.
#pragma once

#include "providers/cpu/quantised/dot_tile.h"

namespace tenon::provider::cpu {

constexpr int32_t kDepthPixels = 4;  // of the largest tile

// Neighbouring pixels of a line: sums[p, c] = sum over the kernel's columns k and lines l of
// src[p * stride + k * dilation, l][channel + c] * weights[k, l, c].
struct DepthTile : DotResults {
  const uint8_t* const* src;  // for each column of pixels, for each of 4 * quads lines: a pixel; i8 where `flips`
  const int8_t* weights;      // [kernel columns, quads, 128 bytes by `depth_place`]; lines beyond the kernel are zeros
  const int32_t* taps;  // [columns of pixels, kDepthPixels]: the kernel's column that the pixel reads there, or -1
  int64_t channel;      // the first one
  int32_t quads;
  int32_t pixels;       // 1 or kDepthPixels
  int32_t src_columns;  // that so many pixels read
  bool flips;
};

// Where the weight of a channel of the panel and a line of the quad lies.
constexpr int64_t depth_place(int64_t channel, int64_t line) {
  return channel % 16 / 4 * 32 + channel / 16 * 16 + channel % 4 * 4 + line;
}

// The best kernel of this processor.
using DepthKernel = void (*)(const DepthTile& tile);
DepthKernel depth_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
