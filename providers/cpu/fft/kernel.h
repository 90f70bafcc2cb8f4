// The transform of several lines at once, one line per vector lane, per dispatch target. T is float or double.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// The radices that have a butterfly, in the order in which a length is split.
inline constexpr int64_t fft_radices[] = {4, 2, 3, 5, 7, 11, 13};

// True if n is at least 2 and a product of the radices.
inline bool has_fft_plan(int64_t n) {
  int64_t rest = n;
  for (const int64_t radix : fft_radices) {
    for (; rest > 1 && rest % radix == 0;) rest /= radix;
  }
  return n > 1 && rest == 1;
}

// Data shared by all transforms of one length that has a plan.
template <class T>
struct FftPlan {
  int64_t length = 0;
  std::vector<int64_t> radices;  // their product is the length
  std::vector<T> roots;          // exp(-2 pi i k / length) for every k, as pairs (real, imaginary)

  explicit FftPlan(int64_t n);
};

enum class FftForm : uint8_t { COMPLEX, REAL_TO_HALF, HALF_TO_REAL };

// Lines of a real form are processed in pairs, as real and imaginary part of one complex line.
template <class T>
struct FftLines {
  const T* const* src;  // each line is contiguous: numbers, or pairs of numbers
  T* const* dst;
  FftForm form;
  bool inverse;
  T scale;
  T* room;  // workspace of 4 (length + 2) lanes
  // If above 0: only the addresses of lines 0 and `lanes` are given, the other lines are adjacent to them, and this is
  // the distance between elements of a line, in numbers.
  int64_t src_step = 0;
  int64_t dst_step = 0;
};

template <class T>
struct FftKernels {
  int64_t lanes = 0;
  // Transforms `lanes` lines, or twice as many of a real form.
  void (*run)(const FftPlan<T>& plan, const FftLines<T>& lines) = nullptr;
};

template <class T>
FftKernels<T> fft_kernels(SimdLevel level);
template <>
FftKernels<float> fft_kernels(SimdLevel level);
template <>
FftKernels<double> fft_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
