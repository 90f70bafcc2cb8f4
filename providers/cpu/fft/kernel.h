// The transform of several lines at once, one line per vector lane, per dispatch target. T is float or double.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/simd/level.h"

namespace tenon::provider::cpu {

// The greatest prime factor that a pass can have. A pass of a large factor costs more than a convolution.
inline constexpr int64_t fft_greatest_factor = 61;

// The factors of n in the order of the passes, which are 4, 8 or primes; empty if n is 1 or has a greater prime factor.
std::vector<int64_t> fft_radices(int64_t n);

// Data shared by all transforms of one length that has radices.
template <class T>
struct FftPlan {
  int64_t length = 0;
  std::vector<int64_t> radices;  // their product is the length
  std::vector<T> roots;          // exp(-2 pi i k / length) for every k, as pairs (real, imaginary)

  explicit FftPlan(int64_t n);
};

enum class FftForm : uint8_t { COMPLEX, REAL_TO_HALF, HALF_TO_REAL };

// A real line of even length is transformed as half as many pairs of neighbours; one of an odd length has imaginary
// parts of 0. Lines never share a transform, so that neither NaN nor the rounding of great numbers passes between them.
template <class T>
struct FftLines {
  const T* const* src;  // each line is contiguous: numbers, or pairs of numbers
  T* const* dst;
  FftForm form;
  bool inverse;
  T scale;
  T* room;  // workspace of 4 (plan length + 2) lanes
  // If above 0: only the address of line 0 is given, the other lines are adjacent to it, and this is the distance
  // between elements of a line, in numbers.
  int64_t src_step = 0;
  int64_t dst_step = 0;
  // Of a real form, if the line has twice the length of the plan: exp(-pi i k / length) for k up to length / 2.
  const T* half_roots = nullptr;
  // If not NULL: pairs laid out like the results. Each result is multiplied by its pair, or, of an inverse transform,
  // by the conjugate. Only for complex lines with a dst_step.
  const T* factors = nullptr;
};

// One real line of 2 `half` numbers.
template <class T>
struct FftHalves {
  int64_t half;
  const T* roots;  // as FftLines::half_roots
  bool inverse;
  T scale;
};

template <class T>
struct FftKernels {
  int64_t lanes = 0;
  // Transforms `lanes` lines.
  void (*run)(const FftPlan<T>& plan, const FftLines<T>& lines) = nullptr;
  // dst = scale * a * b for `count` pairs, or with the conjugate of b. dst may be a.
  void (*multiply)(const T* a, const T* b, bool conjugate, T scale, T* dst, int64_t count) = nullptr;
  // Turns the transformed pairs `src` of a real line into the first `half` + 1 pairs of its spectrum.
  void (*split)(const FftHalves<T>& halves, const T* src, T* dst) = nullptr;
  // Turns the first `half` + 1 pairs of the spectrum of a real line into pairs that are still to be transformed.
  void (*join)(const FftHalves<T>& halves, const T* src, T* dst) = nullptr;
};

template <class T>
FftKernels<T> fft_kernels(SimdLevel level);
template <>
FftKernels<float> fft_kernels(SimdLevel level);
template <>
FftKernels<double> fft_kernels(SimdLevel level);

}  // namespace tenon::provider::cpu
