// The tile of a depthwise convolution of bytes, where each channel has weights of its own. One instruction multiplies
// four rows of the kernel.
#pragma once

#include "providers/cpu/quantised/dot_tile.h"

namespace tenon::provider::cpu {

constexpr int32_t kDepthPixels = 4;  // pixels of the largest tile

// Adjacent pixels of a row: sums[p, c] = sum over kernel columns k and kernel rows l of
// src[p * stride + k * dilation, l][channel + c] * weights[k, l, c].
struct DepthTile : DotResults {
  const uint8_t* const* src;  // for each column of pixels and each of 4 * quads rows: a pixel; i8 if `flips`
  const int8_t* weights;  // [kernel columns, quads, 128 bytes ordered by `depth_place`]; rows beyond the kernel are 0
  const int32_t* taps;    // [columns of pixels, kDepthPixels]: the kernel column that the pixel reads there, or -1
  int64_t channel;        // the first channel
  int32_t quads;
  int32_t pixels;       // 1 or kDepthPixels
  int32_t src_columns;  // columns of SRC that the pixels read
  bool flips;
};

// The index of the weight of a channel of the panel and a row of the quad.
constexpr int64_t depth_place(int64_t channel, int64_t line) {
  return channel % 16 / 4 * 32 + channel / 16 * 16 + channel % 4 * 4 + line;
}

// The fastest kernel for this processor.
using DepthKernel = void (*)(const DepthTile& tile);
DepthKernel depth_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
