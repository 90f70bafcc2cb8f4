// Shared by the methods for the gradient of a convolution's weights: sizes, operands, units of results.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/primitive.h"
#include "providers/cpu/weight_gradient/outer.h"

namespace tenon::provider::cpu {

inline int64_t divided(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The steps [first, last) of `results` for which step * stride + offset lies within [0, length).
struct Span {
  int64_t first, last;
};
Span steps_inside(int64_t results, int64_t stride, int64_t offset, int64_t length);

// The reason why groups have so few channels that a product of channels does not pay. Groups need static dims. Pure.
Refusal why_few_channels(const ep_primitive_desc& desc);

// Distances between elements, in elements.
struct WeightStrides {
  int64_t outer = 0;    // between images; in DST, between result channels
  int64_t channel = 0;  // between channels; in DST, between channels of SRC
  int64_t axis[3] = {0, 0, 0};
};

// Sizes of a launch with three spatial axes. Absent axes have length 1.
struct WeightSizes {
  WeightSizes(const ep_primitive_desc& desc, const ep_shape* shapes);

  int64_t images = 0, groups = 1;
  int64_t in = 0, out = 0;  // channels of SRC and of GRADIENT, of all groups together
  int64_t src[3] = {1, 1, 1}, results[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0};
  WeightStrides src_strides, gradient_strides, dst_strides;

  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t lines() const { return images * results[0] * results[1]; }  // lines of GRADIENT
  int64_t pixels() const { return lines() * results[2]; }             // pixels of GRADIENT
  int64_t src_pixels() const { return images * src[0] * src[1] * src[2]; }
  int64_t nanoseconds() const { return pixels() * taps() * (in / groups) * out / 90; }
};

// Operands with contiguous channels.
struct WeightOperands {
  const float* src;
  const float* gradient;
  float* dst;
  WeightStrides src_strides, gradient_strides;
};

// Results are divided into units. A unit is a block of channels of GRADIENT by a panel of channels of SRC. A panel
// consists of whole vectors; to achieve this, the last panel may overlap the previous one.
class WeightUnits {
 public:
  struct Unit {
    int64_t row, column;    // the first channels of GRADIENT and of SRC, counted over all groups
    int64_t column_of_dst;  // `column` within its group
    int32_t rows, columns;
    int32_t known;  // columns that overlap the previous panel
  };

  // `columns` is the number of columns per group.
  WeightUnits(const WeightSizes& sizes, int64_t columns, const OuterKernels& kernels, int32_t threads);

  int64_t count() const { return groups_ * blocks_ * panels_; }
  Unit at(int64_t number) const;  // blocks of one panel are consecutive
  // The floats for the sums [taps, rows, columns of a tile] of a unit.
  int64_t floats(int64_t taps) const { return taps * tile_floats(); }
  int64_t tile_floats() const { return kernels_.rows * kernels_.columns; }
  const OuterKernels& kernels() const { return kernels_; }

 private:
  OuterKernels kernels_;
  int64_t groups_, rows_, columns_;
  int64_t blocks_, panels_;
  int64_t width_;  // columns per panel
};

// The offsets of taps and columns of sums in DST.
struct WeightPlaces {
  std::vector<int64_t> taps, columns;
  int64_t row;

  // Writes the sums [tap, tile] of a unit.
  void write(const WeightUnits& units, const WeightUnits::Unit& unit, const float* sums, float* dst) const;
};

}  // namespace tenon::provider::cpu
