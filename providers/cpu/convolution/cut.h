// Cut: how a product of pixels and weights is divided into tiles, and how its weights are packed.
#pragma once

#include <algorithm>

#include "providers/cpu/convolution/images.h"
#include "providers/cpu/convolution/kernel.h"

namespace tenon::provider::cpu {

constexpr int64_t kFewChannels = 16;  // channels of SRC; with fewer, a copy into a frame pays
// Bytes of weights per pass over the pixels, so that they stay in the L2 cache.
constexpr int64_t kPanelBytes = 192 * 1024;

// Weights are packed as [panel][tap][channel][column].
struct Cut {
  Cut(const Images& images, const TileKernels& kernels);

  // Pixels 4 KiB apart share one set of an L1 cache, which has 8 to 12 lines.
  int64_t most_rows() const {
    const bool alias = !framed && images.in * images.stride[1] * static_cast<int64_t>(sizeof(float)) % 4096 == 0;
    return alias ? std::min<int64_t>(kernels.rows, 8) : kernels.rows;
  }

  // Number of packed columns of panel `panel`, a multiple of the vector length.
  int64_t width(int64_t panel) const {
    const int64_t left = images.out - panel * kernels.columns;
    return left <= kernels.lanes ? kernels.lanes : kernels.columns;
  }
  // The first pixel of tile `number`.
  int64_t first_pixel(int64_t number) const { return number * images.pixels() / blocks; }
  int64_t panel_floats() const { return rows * depth * kernels.columns; }
  uint64_t packed_bytes() const {
    const int64_t floats = (panels - 1) * panel_floats() + rows * depth * width(panels - 1);
    return static_cast<uint64_t>(floats) * sizeof(float);
  }
  uint64_t frame_bytes() const {
    return framed ? static_cast<uint64_t>(images.count * frame[0] * frame[1] * images.in) * sizeof(float) : 0;
  }
  // Estimated time on one thread. With few pixels the weights dominate: memory delivers about 16 bytes per nanosecond.
  int64_t nanoseconds() const {
    return std::max(images.pixels() * images.out * rows * depth / 110, static_cast<int64_t>(packed_bytes() / 16));
  }

  Images images;
  TileKernels kernels;
  bool framed;
  bool joined;          // one tap, and pixels of SRC lie like pixels of DST
  int64_t rows, depth;  // taps, and channels per tap, as the kernel sees them
  int64_t frame[2];
  int64_t block, blocks;         // pixels of the largest tile; number of tiles
  int64_t panels, whole_panels;  // panels of columns
  int64_t group;                 // taps per pass
  int64_t chunk;                 // blocks that all panels process before the next blocks
};

}  // namespace tenon::provider::cpu
