#include "providers/cpu/fft/line.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace tenon::provider::cpu {
namespace {

using Complex = LinePlan::Complex;

// From here on a convolution is faster than KissFFT's butterfly, whose time grows with the square of the factor.
constexpr int64_t kLargeFactor = 50;

int64_t largest_prime_factor(int64_t n) {
  int64_t largest = 1;
  for (int64_t factor = 2; factor * factor <= n; ++factor) {
    for (; n % factor == 0; n /= factor) largest = factor;
  }
  return std::max(largest, n);
}

// The least product of twos, threes and fives that is at least `n`.
int64_t smooth_length(int64_t n) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t fives = 1; fives < 5 * n; fives *= 5) {
    for (int64_t threes = fives; threes < 3 * n; threes *= 3) {
      int64_t length = threes;
      while (length < n) length *= 2;
      least = std::min(least, length);
    }
  }
  return least;
}

int64_t transform_length(int64_t n) { return largest_prime_factor(n) < kLargeFactor ? n : smooth_length(2 * n - 1); }

// Unlike std::complex, without a special case for NaN.
Complex product(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

}  // namespace

LinePlan::LinePlan(int64_t n, bool inverse)
    : length_(n), padded_(transform_length(n)), transform_(static_cast<size_t>(padded_), inverse && padded_ == n) {
  if (padded_ == n) return;
  chirp_.resize(static_cast<size_t>(n));
  int64_t square = 0;  // k^2 modulo 2 n
  for (int64_t k = 0; k < n; ++k) {
    const double angle = std::numbers::pi * static_cast<double>(square) / static_cast<double>(n);
    chirp_[static_cast<size_t>(k)] = {std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle)};
    square = (square + 2 * k + 1) % (2 * n);
  }
  std::vector<Complex> response(static_cast<size_t>(padded_));
  for (int64_t k = 0; k < n; ++k) {
    const Complex value = std::conj(chirp_[static_cast<size_t>(k)]) / static_cast<double>(padded_);
    response[static_cast<size_t>(k)] = value;
    if (k != 0) response[static_cast<size_t>(padded_ - k)] = value;
  }
  filter_.resize(response.size());
  transform_.transform(response.data(), filter_.data());
}

double LinePlan::steps() const {
  const auto n = static_cast<double>(padded_);
  return (convolves() ? 2 : 1) * n * (4 + 3 * std::log2(n));
}

LinePlan::Room::Room(const LinePlan& plan) : transform_(plan.transform_) {
  padded_.resize(plan.filter_.size());
  spectrum_.resize(plan.filter_.size());
}

void LinePlan::transform(const Complex* in, Complex* out, Room* room) const {
  if (!convolves()) return room->transform_.transform(in, out);
  Complex* const padded = room->padded_.data();
  Complex* const spectrum = room->spectrum_.data();
  const size_t n = chirp_.size(), size = filter_.size();
  for (size_t k = 0; k < n; ++k) padded[k] = product(in[k], chirp_[k]);
  std::fill(padded + n, padded + size, Complex());
  room->transform_.transform(padded, spectrum);
  // The inverse transform is the conjugate of the transform of the conjugate.
  for (size_t k = 0; k < size; ++k) padded[k] = std::conj(product(spectrum[k], filter_[k]));
  room->transform_.transform(padded, spectrum);
  for (size_t k = 0; k < n; ++k) out[k] = product(std::conj(spectrum[k]), chirp_[k]);
}

}  // namespace tenon::provider::cpu
