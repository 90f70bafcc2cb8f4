// The transform of many lines at once, a line in each lane of a vector, per dispatch target. T is float or double.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// The radices that have a butterfly, in the order in which they are split off.
inline constexpr int64_t fft_radices[] = {4, 2, 3, 5, 7, 11, 13};

// Whether n is 2 at least and a product of radices.
inline bool has_fft_plan(int64_t n) {
  int64_t rest = n;
  for (const int64_t radix : fft_radices) {
    for (; rest > 1 && rest % radix == 0;) rest /= radix;
  }
  return n > 1 && rest == 1;
}

// What the transforms of one length that has a plan share.
template <class T>
struct FftPlan {
  int64_t length = 0;
  std::vector<int64_t> radices;  // their product is the length
  std::vector<T> roots;          // exp(-2 pi i k / length) of every k, as pairs

  explicit FftPlan(int64_t n);
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
  // Above 0: lines 0 and `lanes` alone are given, the others lie beside them, and the elements of a line so many
  // numbers apart.
  int64_t src_step = 0;
  int64_t dst_step = 0;
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
