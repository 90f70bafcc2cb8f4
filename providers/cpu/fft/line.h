// The transform of one line of complex numbers in f64, of any length.
#pragma once

#include <complex>
#include <cstdint>
#include <kissfft/kissfft.hh>
#include <vector>

namespace tenon::provider::cpu {

// Data shared by all transforms of one length in one direction. KissFFT transforms most lengths. A length with a large
// prime factor becomes a convolution of a length without one (L. I. Bluestein, "A linear filtering approach to the
// computation of discrete Fourier transform", 1970), so the time of all lengths n grows with n log n.
class LinePlan {
 public:
  using Complex = std::complex<double>;

  LinePlan(int64_t n, bool inverse);

  int64_t length() const { return length_; }
  // The estimated number of steps for one line.
  double steps() const;

  // The buffers of one thread.
  class Room {
   public:
    explicit Room(const LinePlan& plan);

   private:
    friend LinePlan;
    kissfft<double> transform_;  // contains a buffer that transforms write to
    std::vector<Complex> padded_, spectrum_;
  };
  void transform(const Complex* in, Complex* out, Room* room) const;

 private:
  bool convolves() const { return !chirp_.empty(); }

  int64_t length_;               // elements of a line
  int64_t padded_;               // elements of its transforms, which a convolution needs longer
  kissfft<double> transform_;    // a transform of length padded_
  std::vector<Complex> chirp_;   // exp(-pi i k^2 / length), or its conjugate for the inverse; empty without convolution
  std::vector<Complex> filter_;  // the spectrum of the chirp's conjugate, divided by padded_
};

}  // namespace tenon::provider::cpu
