// Planes of a depthwise convolution with channels first, compiled once per dispatch target. Vectors lie along a row.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/convolution/f32_planes.cpp"
#include "hwy/foreach_target.h"
//
#include "providers/cpu/convolution/finish-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

// `count` elements that lie `kStep` apart. kWhole: a whole vector may be read, and what lies between and behind.
template <int kStep, bool kWhole>
HWY_INLINE V load_apart(const float* from, int64_t count) {
  if constexpr (kStep == 1) {
    return load<kWhole>(from, count);
  } else {
    const D d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    if (lanes == 1) return hn::Set(d, *from);
    const int64_t span = 2 * count - 1;
    const V low = load<kWhole>(from, std::min(span, lanes));
    const V high = !kWhole && span <= lanes ? hn::Zero(d) : load<kWhole>(from + lanes, span - lanes);
#if HWY_TARGET == HWY_SCALAR
    static_cast<void>(high);
    return low;
#else
    return hn::ConcatEven(d, high, low);
#endif
  }
}

HWY_INLINE V finished(const DepthwisePlane& plane, V sum, int64_t at, int64_t count) {
  if (plane.finish.other != nullptr) sum = hn::Add(sum, load<false>(plane.finish.other + at, count));
  if (plane.finish.bounded) sum = bounded(sum, hn::Set(D(), plane.finish.low), hn::Set(D(), plane.finish.high));
  return sum;
}

// Results x to x + count of row y, whose taps [first, last) along the row and column lie within the plane.
template <int kStep, bool kWhole>
HWY_INLINE void results_of_row(const DepthwisePlane& plane, int64_t y, int64_t x, int64_t count, const int64_t* first,
                               const int64_t* last) {
  const D d;
  V sum = hn::Set(d, plane.bias);
  for (int64_t ky = first[0]; ky < last[0]; ++ky) {
    const float* const row = plane.src + (y * plane.stride[0] - plane.pad[0] + ky * plane.dilation[0]) * plane.src_row +
                             x * kStep - plane.pad[1];
    const float* const weights = plane.weights + ky * plane.kernel[1];
    for (int64_t kx = first[1]; kx < last[1]; ++kx) {
      const V value = load_apart<kStep, kWhole>(row + kx * plane.dilation[1], count);
      sum = hn::MulAdd(value, hn::Set(d, weights[kx]), sum);
    }
  }
  const int64_t at = y * plane.dst_row + x;
  store<kWhole>(finished(plane, sum, at, count), plane.dst + at, count);
}

// The same for 3 x 3 taps that lie side by side, all within the plane: kRows rows of results share what is loaded.
template <int kStep, int kRows, bool kWhole>
HWY_INLINE void nine_taps(const DepthwisePlane& plane, int64_t y, int64_t x, int64_t count, const V* held) {
  V sum[kRows];
  for (int i = 0; i < kRows; ++i) sum[i] = hn::Set(D(), plane.bias);
  const float* row = plane.src + (y * kStep - plane.pad[0]) * plane.src_row + x * kStep - plane.pad[1];
  for (int line = 0; line < (kRows - 1) * kStep + 3; ++line, row += plane.src_row) {
    for (int kx = 0; kx < 3; ++kx) {
      const V value = load_apart<kStep, kWhole>(row + kx, count);
      for (int i = 0; i < kRows; ++i) {
        const int ky = line - i * kStep;
        if (ky >= 0 && ky < 3) sum[i] = hn::MulAdd(value, held[3 * ky + kx], sum[i]);
      }
    }
  }
  for (int i = 0; i < kRows; ++i) {
    const int64_t at = (y + i) * plane.dst_row + x;
    store<kWhole>(finished(plane, sum[i], at, count), plane.dst + at, count);
  }
}

// Result x of row y, some of whose taps may lie beside the plane.
void result_at_edge(const DepthwisePlane& plane, int64_t y, int64_t x) {
  const int64_t left = x * plane.stride[1] - plane.pad[1];
  float sum = plane.bias;
  for (int64_t ky = plane.inside[2 * y]; ky < plane.inside[2 * y + 1]; ++ky) {
    const int64_t line = y * plane.stride[0] - plane.pad[0] + ky * plane.dilation[0];
    const float* const weights = plane.weights + ky * plane.kernel[1];
    for (int64_t kx = 0; kx < plane.kernel[1]; ++kx) {
      const int64_t column = left + kx * plane.dilation[1];
      if (static_cast<uint64_t>(column) >= static_cast<uint64_t>(plane.src_row)) continue;
      sum += plane.src[line * plane.src_row + column] * weights[kx];
    }
  }
  const int64_t at = y * plane.dst_row + x;
  if (plane.finish.other != nullptr) sum += plane.finish.other[at];
  if (plane.finish.bounded) sum = sum <= plane.finish.low ? plane.finish.low : sum;
  if (plane.finish.bounded) sum = sum >= plane.finish.high ? plane.finish.high : sum;
  plane.dst[at] = sum;
}

// `count` results from x on of rows y to y + kRows; kRows > 1 only where all nine taps lie within the plane.
template <int kStep, int kRows, bool kWhole>
HWY_INLINE void results_of_rows(const DepthwisePlane& plane, int64_t y, int64_t x, int64_t count, const V* held) {
  if constexpr (kRows > 1) {
    nine_taps<kStep, kRows, kWhole>(plane, y, x, count, held);
  } else {
    const int64_t first[2] = {plane.inside[2 * y], 0};
    const int64_t last[2] = {plane.inside[2 * y + 1], plane.kernel[1]};
    results_of_row<kStep, kWhole>(plane, y, x, count, first, last);
  }
}

template <int kStep, int kRows>
HWY_INLINE void rows_at(const DepthwisePlane& plane, int64_t y, const V* held) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int i = 0; i < kRows; ++i) {
    for (int64_t x = 0; x < plane.begin; ++x) result_at_edge(plane, y + i, x);
    for (int64_t x = plane.end; x < plane.dst_row; ++x) result_at_edge(plane, y + i, x);
  }
  int64_t x = plane.begin;
  // A whole vector of results reads a step beyond its last element, which must lie within the row.
  const int64_t reach = (plane.kernel[1] - 1) * plane.dilation[1] - plane.pad[1] + kStep - 1;
  for (; x + lanes <= plane.end && (x + lanes - 1) * kStep + reach < plane.src_row; x += lanes) {
    results_of_rows<kStep, kRows, true>(plane, y, x, lanes, held);
  }
  for (; x < plane.end; x += lanes) {
    results_of_rows<kStep, kRows, false>(plane, y, x, std::min(lanes, plane.end - x), held);
  }
}

template <int kStep>
HWY_INLINE void rows_of_plane(const DepthwisePlane& plane) {
  constexpr int kRows = 4;
  const bool nine = plane.kernel[0] == 3 && plane.kernel[1] == 3 && plane.dilation[0] == 1 && plane.dilation[1] == 1 &&
                    plane.stride[0] == kStep;
  V held[9];
  for (int t = 0; t < 9; ++t) held[t] = hn::Set(D(), nine ? plane.weights[t] : 0);
  const auto whole = [&](int64_t y) { return plane.inside[2 * y] == 0 && plane.inside[2 * y + 1] == 3; };
  for (int64_t y = 0; y < plane.dst_rows;) {
    if (nine && y + kRows <= plane.dst_rows && whole(y) && whole(y + kRows - 1)) {
      rows_at<kStep, kRows>(plane, y, held);
      y += kRows;
    } else {
      rows_at<kStep, 1>(plane, y, held);
      ++y;
    }
  }
}

void depthwise_plane(const DepthwisePlane& plane) {
  plane.stride[1] == 1 ? rows_of_plane<1>(plane) : rows_of_plane<2>(plane);
}

DepthwisePlaneKernel depthwise_plane_of_target() { return depthwise_plane; }

}  // namespace
}  // namespace tenon::provider::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "providers/cpu/simd/dispatch.h"

namespace tenon::provider::cpu {

DepthwisePlaneKernel depthwise_plane_kernel(SimdLevel level) {
  return TENON_CPU_DISPATCH(level, depthwise_plane_of_target)();
}

}  // namespace tenon::provider::cpu
#endif
