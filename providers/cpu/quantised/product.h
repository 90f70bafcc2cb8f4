// A byte product at launch: addresses of rows, weights and results, and the panels of weights.
#pragma once

#include <cstdint>

#include "providers/cpu/primitive.h"
#include "providers/cpu/quantised/dot_tile.h"

namespace tenon::provider::cpu {

// A convolution of one group with two spatial dims and channels last; or a matmul, whose rows are the pixels of one
// image row; or, with `depthwise`, a convolution with as many groups as channels and results.
struct ByteProduct {
  int64_t images = 1, in = 1, out = 1;
  int64_t src_size[2] = {1, 1}, dst_size[2] = {1, 1}, kernel[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1},
          pad[2] = {0, 0};
  int64_t src_strides[4] = {};     // strides of image, channel, row and column, in elements
  int64_t dst_strides[4] = {};     // likewise
  int64_t weight_strides[4] = {};  // strides of result, channel, row and column
  bool depthwise = false;

  // True if the taps of a kernel row are computed as one tap, because few channels alone would not fill a product.
  bool joins_taps() const { return !depthwise && in < 16 && kernel[1] > 1 && dilation[1] == 1; }
  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t pixels() const { return dst_size[0] * dst_size[1]; }
};

// The number of independent products, and the distances between their operands, in elements: a batch of matrices, or
// groups of channels.
struct Batch {
  int64_t count = 1, src = 0, weight = 0, dst = 0;
  bool groups = false;
};

// The layout of packed weights: [panel, tap, group of 4 channels, column, 4], then the sum of each column. If `joined`,
// the taps of a kernel row form one tap with all their channels. Depthwise: [panel, kernel column, 4 kernel rows, 128
// bytes ordered by `depth_place`], then the sums.
struct Panels {
  int64_t count, taps, depth, groups;

  Panels(const ByteProduct& product, bool joined)
      : count((product.out + kDotColumns - 1) / kDotColumns),
        taps(product.depthwise ? product.kernel[1]
             : joined          ? product.kernel[0]
                               : product.taps()),
        depth(joined ? product.kernel[1] * product.in : product.in),
        groups(((product.depthwise ? product.kernel[0] : depth) + 3) / 4) {}
  int64_t panel_bytes() const { return taps * groups * kDotColumns * 4; }
  int64_t bytes() const { return count * panel_bytes() + count * kDotColumns * 4; }
  const int32_t* sums(const char* packed) const {
    return reinterpret_cast<const int32_t*>(packed + count * panel_bytes());
  }
  // With `flips`, `src` is u8, and 128 is subtracted from each value.
  void pack(char* dst, const char* src, const ByteProduct& product, bool flips) const;
};

// Makes the primitive. `column_axis` is the axis of the weight's columns.
Refusal make_product(ep_device& device, const ep_primitive_desc& desc, const ByteProduct& product, const Batch& batch,
                     int32_t weight_role, int32_t column_axis, ep_primitive** out, ep_primitive_info& info);

}  // namespace tenon::provider::cpu
