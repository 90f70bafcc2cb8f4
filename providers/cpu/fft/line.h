// The transform of one line of complex numbers, of any length, in T: float or double.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "providers/cpu/fft/kernel.h"

namespace tenon::provider::cpu {

// Estimated nanoseconds of one call of FftKernels::run for a length that has radices.
double fft_call_time(int64_t n, int64_t lanes, int64_t number_size);

// The roots of FftHalves.
template <class T>
std::vector<T> half_roots(int64_t half);

// How to transform one line of a length, and what it costs. Finding it takes longer than a short transform.
struct LineShape {
  int64_t length;      // elements of a line
  int64_t padded;      // elements of its transforms
  int64_t columns;     // the length of the first of two steps, or of the only one
  int64_t rows;        // the length of the second step; 1: there is no second step
  int64_t lanes;       // lanes of a vector
  double time;         // estimated nanoseconds on one thread
  double column_time;  // nanoseconds for a group of columns
  double row_time;     // nanoseconds for a group of rows

  // Numbers between two rows of the values between the two steps: not a power of two.
  int64_t row_step() const { return 2 * rows + 16; }
  // Numbers of workspace that one thread needs for a group of lines.
  int64_t group_room() const { return 4 * (std::max(columns, rows) + 2) * lanes; }
  // Numbers of workspace that a transform on `threads` threads needs.
  int64_t room(int32_t threads) const;
};
LineShape line_shape(int64_t n, int64_t lanes, int64_t number_size);

// Data shared by all transforms of one length.
//   * A length that is a product a b with radices becomes b transforms of length a, and then a transforms of length b,
//     several in a vector (D. H. Bailey, "FFTs in external or hierarchical memory", 1990). A short length is one
//     transform, which fills one lane.
//   * A length with a large prime factor becomes a convolution of a length without one (L. I. Bluestein, "A linear
//     filtering approach to the computation of discrete Fourier transform", 1970), so the time of all lengths n grows
//     with n log n.
template <class T>
class LinePlan {
 public:
  LinePlan(SimdLevel level, const LineShape& shape);

  // dst = scale * the transform of src; both are contiguous pairs, and do not overlap.
  void transform(const T* src, T* dst, bool inverse, T scale, T* room, int32_t threads) const;

 private:
  void smooth(const T* src, T* dst, bool inverse, T scale, T* room, int32_t threads) const;
  void convolve(const T* src, T* dst, bool inverse, T scale, T* room, int32_t threads) const;

  FftKernels<T> kernels_;
  LineShape shape_;
  std::optional<FftPlan<T>> columns_, rows_;
  std::vector<T> factors_;  // between the steps, laid out like the values there
  std::vector<T> chirp_;    // exp(-pi i k^2 / length), as pairs; empty without convolution
  std::vector<T> filter_;   // the spectrum of the chirp's conjugate
};

}  // namespace tenon::provider::cpu
