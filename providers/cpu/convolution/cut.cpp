#include "providers/cpu/convolution/cut.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t kPixelsBytes = 256 * 1024;    // bytes of SRC that successive panels of columns read
constexpr uint64_t kWeightsBytes = 384 * 1024;  // bytes of weights that every tile of pixels may read from the L2 cache

}  // namespace

Cut::Cut(const Images& images, const TileKernels& kernels) : images(images), kernels(kernels) {
  framed = images.in < kFewChannels && images.kernel[1] > 1 && images.dilation[1] == 1;
  rows = framed ? images.kernel[0] : images.taps();
  depth = framed ? images.kernel[1] * images.in : images.in;
  joined = images.taps() == 1;
  for (int axis = 0; axis < 2; ++axis) {
    joined =
        joined && images.stride[axis] == 1 && images.pad[axis] == 0 && images.src_size[axis] == images.dst_size[axis];
    frame[axis] =
        (images.dst_size[axis] - 1) * images.stride[axis] + (images.kernel[axis] - 1) * images.dilation[axis] + 1;
  }
  block = most_rows();
  blocks = (images.pixels() + block - 1) / block;
  // A small tile waits for its weights as long as a large one, so all tiles get about the same size.
  if (blocks > 0) block = (images.pixels() + blocks - 1) / blocks;
  panels = (images.out + kernels.columns - 1) / kernels.columns;
  whole_panels = images.out / kernels.columns;
  const int64_t tap_bytes = depth * kernels.columns * static_cast<int64_t>(sizeof(float));
  // With a single tile of pixels every weight is read once, so panels are read from end to end.
  group = blocks == 1 ? rows : std::clamp<int64_t>(kPanelBytes / tap_bytes, 1, rows);
  const int64_t block_bytes = block * images.in * images.stride[0] * images.stride[1] * 4;
  chunk = std::clamp<int64_t>(kPixelsBytes / block_bytes, 1, blocks);
  if (group == rows && packed_bytes() <= kWeightsBytes) chunk = 1;
}

}  // namespace tenon::provider::cpu
