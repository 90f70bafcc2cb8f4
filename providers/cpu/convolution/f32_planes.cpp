// Planes of a depthwise convolution with channels first, compiled once per dispatch target. Vectors run along a row.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "providers/cpu/convolution/f32_planes.cpp"
#include "hwy/foreach_target.h"
//
#include "providers/cpu/convolution/finish-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::provider::cpu::HWY_NAMESPACE {
namespace {

// Loads a vector of elements that are `kStep` apart.
template <int kStep>
HWY_INLINE V load_apart(const float* from) {
  const D d;
  if constexpr (kStep == 1) {
    return hn::LoadU(d, from);
  } else {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    if (lanes == 1) return hn::Set(d, *from);
#if HWY_TARGET == HWY_SCALAR
    return hn::Set(d, *from);
#else
    return hn::ConcatEven(d, hn::LoadU(d, from + lanes), hn::LoadU(d, from));
#endif
  }
}

HWY_INLINE void finish_vector(const DepthwisePlane& plane, V sum, int64_t at, int64_t count) {
  if (plane.finish.other != nullptr) sum = hn::Add(sum, load<false>(plane.finish.other + at, count));
  if (plane.finish.bounded) sum = bounded(sum, hn::Set(D(), plane.finish.low), hn::Set(D(), plane.finish.high));
  store<false>(sum, plane.dst + at, count);
}

// Computes a vector of results at x for rows [y, y + kRows), with kTaps adjacent rows of taps. The rows share loads.
template <int kStep, int kTaps, int kRows>
HWY_INLINE void rows_of_results(const DepthwisePlane& plane, int64_t y, int64_t x, int64_t count) {
  constexpr int kLines = (kRows - 1) * kStep + kTaps;
  V sum[kRows];
  for (int i = 0; i < kRows; ++i) sum[i] = hn::Set(D(), plane.bias);
  const float* from = plane.src + y * kStep * plane.src_row + x * kStep;
  const int64_t columns = plane.kernel[1], src_row = plane.src_row, step = plane.dilation[1];
  for (int64_t kx = 0; kx < columns; ++kx, from += step) {
    V lines[kLines];
    for (int line = 0; line < kLines; ++line) lines[line] = load_apart<kStep>(from + line * src_row);
    for (int ky = 0; ky < kTaps; ++ky) {
      const V weight = hn::Set(D(), plane.weights[ky * columns + kx]);
      for (int i = 0; i < kRows; ++i) sum[i] = hn::MulAdd(lines[i * kStep + ky], weight, sum[i]);
    }
  }
  for (int i = 0; i < kRows; ++i) finish_vector(plane, sum[i], (y + i) * plane.dst_row + x, count);
}

// Like the function above, for one row and any taps.
template <int kStep>
HWY_INLINE void row_of_results(const DepthwisePlane& plane, int64_t y, int64_t x, int64_t count) {
  V sum = hn::Set(D(), plane.bias);
  const float* from = plane.src + y * plane.stride[0] * plane.src_row + x * kStep;
  for (int64_t ky = 0; ky < plane.kernel[0]; ++ky) {
    for (int64_t kx = 0; kx < plane.kernel[1]; ++kx) {
      const V value = load_apart<kStep>(from + ky * plane.dilation[0] * plane.src_row + kx * plane.dilation[1]);
      sum = hn::MulAdd(value, hn::Set(D(), plane.weights[ky * plane.kernel[1] + kx]), sum);
    }
  }
  finish_vector(plane, sum, y * plane.dst_row + x, count);
}

template <class Results>
HWY_INLINE void along_row(const DepthwisePlane& plane, const Results& results) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t x = 0; x < plane.dst_row; x += lanes) results(x, std::min(lanes, plane.dst_row - x));
}

template <int kStep, int kTaps>
void rows_of_plane(const DepthwisePlane& plane) {
  constexpr int kRows = 4;
  int64_t y = 0;
  for (; y + kRows <= plane.dst_rows; y += kRows) {
    along_row(plane, [&](int64_t x, int64_t count) { rows_of_results<kStep, kTaps, kRows>(plane, y, x, count); });
  }
  for (; y < plane.dst_rows; ++y) {
    along_row(plane, [&](int64_t x, int64_t count) { rows_of_results<kStep, kTaps, 1>(plane, y, x, count); });
  }
}

template <int kStep>
void plane_of_step(const DepthwisePlane& plane) {
  const bool even = plane.stride[0] == kStep && plane.dilation[0] == 1;
  switch (even ? plane.kernel[0] : 0) {
    case 3: return rows_of_plane<kStep, 3>(plane);
    case 5: return rows_of_plane<kStep, 5>(plane);
    case 7: return rows_of_plane<kStep, 7>(plane);
    default: break;
  }
  for (int64_t y = 0; y < plane.dst_rows; ++y) {
    along_row(plane, [&](int64_t x, int64_t count) { row_of_results<kStep>(plane, y, x, count); });
  }
}

void depthwise_plane(const DepthwisePlane& plane) {
  plane.stride[1] == 1 ? plane_of_step<1>(plane) : plane_of_step<2>(plane);
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
