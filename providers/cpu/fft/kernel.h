// The transform of many lines at once, a line in each lane of a vector, per dispatch target. T is float or double.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// What the transforms of one length share.
template <class T>
struct FftPlan {
  int64_t length = 0;
  std::vector<int32_t> radices;  // their product is the length; empty if a factor is too great
  std::vector<T> roots;          // exp(-2 pi i k / length) of every k, as pairs

  explicit FftPlan(int64_t n);
  bool usable() const { return !radices.empty(); }
};

enum class FftForm : uint8_t { COMPLEX, REAL_TO_HALF, HALF_TO_REAL };

// Lines of a real form go in twos, as the parts of complex ones.
template <class T>
struct FftLines {
  const T* const* src;  // each contiguous: numbers, or pairs of them
  T* const* dst;
  FftForm form;
  bool inverse;
  T scale;
  T* room;  // 4 (length + 2) lanes
};

template <class T>
struct FftKernels {
  int64_t lanes = 0;
  // Of `lanes` lines, or twice as many of a real form.
  void (*run)(const FftPlan<T>& plan, const FftLines<T>& lines) = nullptr;
};

template <class T>
FftKernels<T> fft_kernels(SimdLevel level);
template <>
FftKernels<float> fft_kernels(SimdLevel level);
template <>
FftKernels<double> fft_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
