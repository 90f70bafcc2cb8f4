// The kernels of linear and cubic interpolation, per dispatch target. T is float or double.
#pragma once

#include <cstdint>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

template <class T>
struct BlendKernels {
  // dst[c] = sum over k < taps of weights[k] * src[offsets[k] + c] for c < n. `dst` does not overlap `src`.
  void (*rows)(T* dst, const T* src, const int64_t* offsets, const T* weights, int64_t taps, int64_t n);
  // dst[c] = sum over k < taps of weights[k * n + c] * src[offsets[k * n + c]] for c < n.
  void (*places)(T* dst, const T* src, const int32_t* offsets, const T* weights, int64_t taps, int64_t n);
};

template <class T>
BlendKernels<T> blend_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
