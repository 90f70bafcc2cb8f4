// Transforms of lengths with a large prime factor, most of them too long for the reference to sum: some frequencies are
// compared with sums in double, for all forms of fft, and the transform back with the input.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>

#include "sdk/provider/descriptor.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

template <class T>
class Transforms {
 public:
  Transforms(int64_t lines, int64_t n) : lines_(lines), n_(n), half_(n / 2 + 1) {}

  // All numbers are [length, lines] or [length, lines, 2], so the axis is strided.
  std::vector<T> complex(std::vector<T> src, bool inverse, double scale) {
    return run(EP_FFT_COMPLEX, inverse, {n_, lines_, 2}, {n_, lines_, 2}, &src, scale);
  }
  std::vector<T> to_half(std::vector<T> src) {
    return run(EP_FFT_REAL_TO_HALF, false, {half_, lines_, 2}, {n_, lines_}, &src, 1);
  }
  std::vector<T> to_real(std::vector<T> src, double scale) {
    return run(EP_FFT_HALF_TO_REAL, true, {n_, lines_}, {half_, lines_, 2}, &src, scale);
  }

  std::vector<T> random(int64_t parts) {
    std::vector<T> values(static_cast<size_t>(n_ * lines_ * parts));
    std::uniform_real_distribution<double> distribution(-1, 1);
    for (T& value : values) value = static_cast<T>(distribution(engine_));
    return values;
  }

  // Compares some of the `frequencies` results of the transform with sums in double.
  void check_sums(const std::vector<T>& src, int64_t parts, const std::vector<T>& got, int64_t frequencies,
                  bool inverse) {
    for (const int64_t k : {int64_t{0}, int64_t{1}, frequencies / 3, frequencies - 1}) {
      for (const int64_t line : {int64_t{0}, lines_ - 1}) {
        double real = 0, imaginary = 0;
        for (int64_t j = 0; j < n_; ++j) {
          const double angle = 2 * std::numbers::pi * static_cast<double>(j * k % n_) / static_cast<double>(n_);
          const double c = std::cos(angle), s = inverse ? std::sin(angle) : -std::sin(angle);
          const auto at = static_cast<size_t>((j * lines_ + line) * parts);
          const double x = src[at], y = parts == 2 ? static_cast<double>(src[at + 1]) : 0;
          real += x * c - y * s;
          imaginary += x * s + y * c;
        }
        const auto at = static_cast<size_t>((k * lines_ + line) * 2);
        EXPECT_NEAR(got[at], real, most()) << "frequency " << k << " of line " << line;
        EXPECT_NEAR(got[at + 1], imaginary, most()) << "frequency " << k << " of line " << line;
      }
    }
  }
  void check_same(const std::vector<T>& got, const std::vector<T>& wanted) const {
    double difference = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      difference = std::max(difference, std::fabs(static_cast<double>(got[i]) - static_cast<double>(wanted[i])));
    }
    EXPECT_LT(difference, sizeof(T) == 4 ? 1e-6 : 1e-14);
  }

 private:
  double most() const { return (sizeof(T) == 4 ? 4e-7 : 2e-14) * std::sqrt(static_cast<double>(n_)) * 4; }

  std::vector<T> run(int32_t form, bool inverse, const std::vector<int64_t>& to, const std::vector<int64_t>& from,
                     std::vector<T>* src, double scale) {
    constexpr int32_t kDType = sizeof(T) == 4 ? EP_DTYPE_f32 : EP_DTYPE_f64;
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_fft, {dense(EP_ROLE_DST, kDType, to), dense(EP_ROLE_SRC, kDType, from)});
    desc.attributes.fft = {form, 0, inverse ? 1 : 0, 0};
    size_t count = 1;
    for (const int64_t dim : to) count *= static_cast<size_t>(dim);
    std::vector<T> dst(count, static_cast<T>(NAN));
    ep_scalar factor{};
    factor.dtype = EP_DTYPE_f64;
    factor.value.f64 = scale;
    EXPECT_EQ(run_once(cpu_, desc, {dst.data(), src->data()}, {factor}).status, EP_STATUS_OK) << cpu_.host.sentence();
    return dst;
  }

  int64_t lines_, n_, half_;
  std::mt19937 engine_{7};
  OpenProvider cpu_{"cpu"};
};

template <class T>
void check_all(int64_t lines, int64_t n) {
  SCOPED_TRACE(testing::Message() << lines << " lines of " << n << " numbers of " << sizeof(T) << " bytes");
  Transforms<T> transforms(lines, n);
  const double back = 1 / static_cast<double>(n);
  const std::vector<T> pairs = transforms.random(2), numbers = transforms.random(1);
  const std::vector<T> spectrum = transforms.complex(pairs, false, 1);
  transforms.check_sums(pairs, 2, spectrum, n, false);
  transforms.check_sums(pairs, 2, transforms.complex(pairs, true, 1), n, true);
  transforms.check_same(transforms.complex(spectrum, true, back), pairs);
  const std::vector<T> half = transforms.to_half(numbers);
  transforms.check_sums(numbers, 1, half, n / 2 + 1, false);
  transforms.check_same(transforms.to_real(half, back), numbers);
}

TEST(Fourier, OfLengthsWithALargePrimeFactor) {
  for (const int64_t n : {int64_t{53}, int64_t{1009}, int64_t{2 * 1009}, int64_t{6 * 101 * 103}, int64_t{10007}}) {
    for (const int64_t lines : {1, 2, 5}) {
      check_all<float>(lines, n);
      check_all<double>(lines, n);
    }
  }
}

// All sums of products would take a minute.
TEST(Fourier, OfALongPrimeLength) { check_all<double>(1, 100003); }

}  // namespace
}  // namespace tenon::provider
