// The kernels of convolutions, per dispatch target.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// Steps before a result is stored: add `other`, then clamp to [low, high]. NaN stays NaN.
struct Finish {
  const float* other = nullptr;  // elements laid out like DST; NULL: none
  bool bounded = false;          // false: `low` and `high` are ignored
  float low = 0;                 // not NaN
  float high = 0;
};

// Adjacent results of adjacent pixels: sums[r, c] = sum over t, p of src[t * rows + r][p] * weights[t, p, c]. Several
// panels of columns read the same pixels, one panel after the other.
struct Tile {
  const float* const* src;  // for each tap and row: the channels of the pixel under the tap; a tap is skipped if its
                            // first pixel is NULL
  const float* weights;     // for each panel [taps, depth, columns], columns being one or two whole vectors
  const float* bias;        // NULL: none
  float* dst;
  int64_t dst_row;  // elements between rows
  int64_t taps;
  int64_t depth;
  int64_t panels;
  int64_t panel_floats;  // floats between two panels of the weights
  int64_t ahead;         // prefetch distance: floats beyond the weights that a tile reads
  int64_t ahead_step;    // prefetch step: floats between prefetches; one step per channel
  int32_t rows;          // at most TileKernels::rows
  int32_t columns;       // columns of a panel in DST: TileKernels::columns; fewer only if there is one panel
  bool adds;             // true: DST holds a partial sum already
  bool finishes;         // true: these are the last taps, so `finish` runs
  Finish finish;         // `other` starts at the same offset as DST
};

struct TileKernels {
  void (*run)(const Tile& tile);
  int32_t rows;     // rows of the largest tile
  int32_t lanes;    // lanes of a vector
  int32_t columns;  // columns of a tile, two vectors
};
TileKernels tile_kernels(SimdLevel level);

// A row of results of a depthwise convolution:
// dst[x, c] = sum over t of src[x * step + offsets[t] + c] * weights[t, c].
struct DepthwiseRow {
  const float* src;        // the first tap of the first result
  const int64_t* offsets;  // by tap: its offset in SRC, in elements
  const int32_t* places;   // by tap: its number in `weights`
  int64_t taps;
  int64_t step;          // elements in src between adjacent results
  const float* weights;  // [all taps, channels]
  const float* bias;     // NULL: none
  float* dst;
  int64_t channels;
  int64_t results;
  Finish finish;  // `other` starts at the same offset as DST
};
using DepthwiseKernel = void (*)(const DepthwiseRow& row);

// Rows of one plane of a depthwise convolution with channels first. In arrays of two, [0] belongs to the axis across
// rows and [1] to the axis along rows. All taps must lie within SRC, also for the extra results that fill the last
// vector of a row.
struct DepthwisePlane {
  const float* src;  // the first tap of the first result
  int64_t src_row;   // elements between rows
  float* dst;
  int64_t dst_rows;
  int64_t dst_row;
  const float* weights;  // row-major
  float bias;
  int64_t kernel[2], stride[2], dilation[2];  // stride[1] is 1 or 2
  Finish finish;                              // `other` is laid out like DST
};
using DepthwisePlaneKernel = void (*)(const DepthwisePlane& plane);
DepthwisePlaneKernel depthwise_plane_kernel(SimdLevel level);

DepthwiseKernel depthwise_kernel(SimdLevel level);

// Adjacent results of one spatial dim with channels first, for a few result channels:
// dst[o * dst_row + x] = sum over c, t of src[c * src_row + t * step + x] * weights[c, t, o].
// All taps must lie within SRC, also for the extra results that fill the last vector.
struct Lines {
  const float* src;
  int64_t src_row;
  const float* weights;  // [channels, taps, LineKernel::results], 0 beyond `results`
  const float* bias;     // LineKernel::results values
  float* dst;
  int64_t dst_row;
  int64_t channels;
  int64_t taps;
  int64_t step;
  int64_t results;  // at most LineKernel::results
  int64_t count;    // adjacent results
  Finish finish;    // `other` starts at the same offset as DST
};
struct LineKernel {
  void (*run)(const Lines& lines);
  int64_t results;
  int64_t columns;  // adjacent results of the largest tile
};
LineKernel line_kernel(SimdLevel level);

// All pixels of a small plane for a few result channels:
// dst[o * dst_row + x] = sum over k < depth of columns[k * row + x] * weights[o * depth + k].
// The first pixels fill `vectors` vectors; the last vector may read further elements of `columns`. The remaining
// `singles` pixels are in `single` [singles, depth].
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
  Finish finish;  // `other` starts at the same offset as DST
};
struct PixelKernel {
  void (*run)(const PixelProducts& products);
  int64_t results;
  int64_t lanes;
};
PixelKernel pixel_kernel(SimdLevel level);

}  // namespace tenon::provider::cpu
