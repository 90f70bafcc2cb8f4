// The kernels of convolutions, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// What happens to a result before it is stored: `other` is added, then it is at least `low` and at most `high`. NaN
// stays.
struct Finish {
  const float* other = nullptr;  // elements that lie as those of DST; NULL: none
  bool bounded = false;          // else `low` and `high` do not count
  float low = 0;                 // not NaN
  float high = 0;
};

// Neighbouring results of neighbouring pixels: sums[r, c] = sum over t, p of src[t * rows + r][p] * weights[t, p, c].
// Several panels of columns read the same pixels one after the other.
struct Tile {
  const float* const* src;  // for each tap, for each row: the channels of the pixel that the tap meets; a tap
                            // whose first pixel is NULL meets none
  const float* weights;     // of each panel [taps, depth, columns of one or two whole vectors]
  const float* bias;        // NULL: none
  float* dst;
  int64_t dst_row;  // elements from row to row
  int64_t taps;
  int64_t depth;
  int64_t panels;
  int64_t panel_floats;  // of weights, from panel to panel
  int64_t ahead;         // the first weights that a tile asks into the cache: so many floats beyond those it reads
  int64_t ahead_step;    // floats from there to those that it asks for when it has read one channel
  int32_t rows;          // at most TileKernels::rows
  int32_t columns;       // of a panel, in DST: TileKernels::columns; one panel alone may have fewer
  bool adds;             // DST has a part of each sum already
  bool finishes;         // these are the last taps: `finish` follows
  Finish finish;         // `other` as DST, from the same place on
};

struct TileKernels {
  void (*run)(const Tile& tile);
  int32_t rows;     // of the largest tile
  int32_t lanes;    // of a vector
  int32_t columns;  // of a tile of two vectors
};
TileKernels tile_kernels(SimdLevel level);

// A row of results of a depthwise convolution: dst[x, c] = sum over t of src[x * step + offsets[t] + c] * weights[t,
// c].
struct DepthwiseRow {
  const float* src;        // where the first tap of the first result lies
  const int64_t* offsets;  // of the taps that lie within SRC, in elements
  const int32_t* places;   // of the same taps: their numbers among the weights
  int64_t taps;
  int64_t step;          // elements from the src of one result to that of the next
  const float* weights;  // [all taps, channels]
  const float* bias;     // NULL: none
  float* dst;
  int64_t channels;
  int64_t results;
  Finish finish;  // `other` as DST, from the same place on
};
using DepthwiseKernel = void (*)(const DepthwiseRow& row);

// Rows of a plane of results of a depthwise convolution with channels first. Pairs are along columns, then along rows.
// All taps lie within SRC, also those of the results that make the last vector of a row whole.
struct DepthwisePlane {
  const float* src;  // where the first tap of the first result lies
  int64_t src_row;   // elements from row to row
  float* dst;
  int64_t dst_rows;
  int64_t dst_row;
  const float* weights;  // row-major
  float bias;
  int64_t kernel[2], stride[2], dilation[2];  // the stride along rows is 1 or 2
  Finish finish;                              // `other` as DST
};
using DepthwisePlaneKernel = void (*)(const DepthwisePlane& plane);
DepthwisePlaneKernel depthwise_plane_kernel(SimdLevel level);

DepthwiseKernel depthwise_kernel(SimdLevel level);

// Neighbouring results of one spatial dim with channels first, of a few result channels: dst[o * dst_row + x] = sum
// over c, t of src[c * src_row + t * step + x] * weights[c, t, o]. All taps lie within SRC, also those of the results
// that make the last vector whole.
struct Lines {
  const float* src;
  int64_t src_row;
  const float* weights;  // [channels, taps, LineKernel::results], 0 beyond `results`
  const float* bias;     // of LineKernel::results
  float* dst;
  int64_t dst_row;
  int64_t channels;
  int64_t taps;
  int64_t step;
  int64_t results;  // at most LineKernel::results
  int64_t count;    // of neighbours
  Finish finish;    // `other` as DST, from the same place on
};
struct LineKernel {
  void (*run)(const Lines& lines);
  int64_t results;
  int64_t columns;  // neighbours of the largest tile
};
LineKernel line_kernel(SimdLevel level);

// All pixels of a few result channels, of a small plane: dst[o * dst_row + x] = sum over k < depth of columns[k * row +
// x]
// * weights[o * depth + k]. The first pixels make `vectors` vectors, whose last may have elements beyond them in
// `columns`; the others, `singles` pixels, lie in `single` [singles, depth].
struct PixelProducts {
  const float* columns;
  int64_t row;
  const float* single;
  const float* weights;
  const float* bias;  // NULL: none
  float* dst;
  int64_t dst_row;
  int64_t depth;
  int64_t results;  // at most PixelKernel::results
  int64_t vectors;
  int64_t singles;
  Finish finish;  // `other` as DST, from the same place on
};
struct PixelKernel {
  void (*run)(const PixelProducts& products);
  int64_t results;
  int64_t lanes;
};
PixelKernel pixel_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
