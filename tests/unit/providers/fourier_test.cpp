// Transforms on every dispatch target: of lengths with small factors, with prime factors of 7 to 61 and with greater
// ones, one line and many, contiguous and strided. Most are too long for the reference to sum: some frequencies are
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
  // `contiguous`: all numbers are [lines, length] or [lines, length, 2]; otherwise the axis comes first.
  Transforms(OpenProvider* cpu, int64_t lines, int64_t n, bool contiguous)
      : cpu_(*cpu), lines_(lines), n_(n), half_(n / 2 + 1), contiguous_(contiguous) {}

  std::vector<T> complex(std::vector<T> src, bool inverse, double scale) {
    return run(EP_FFT_COMPLEX, inverse, dims(n_, true), dims(n_, true), &src, scale);
  }
  std::vector<T> to_half(std::vector<T> src) {
    return run(EP_FFT_REAL_TO_HALF, false, dims(half_, true), dims(n_, false), &src, 1);
  }
  std::vector<T> to_real(std::vector<T> src, double scale) {
    return run(EP_FFT_HALF_TO_REAL, true, dims(n_, false), dims(half_, true), &src, scale);
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
          const size_t at = place(j, line, n_, parts);
          const double x = src[at], y = parts == 2 ? static_cast<double>(src[at + 1]) : 0;
          real += x * c - y * s;
          imaginary += x * s + y * c;
        }
        const size_t at = place(k, line, frequencies, 2);
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
    EXPECT_LT(difference, sizeof(T) == 4 ? 2e-6 : 1e-14);
  }

  // The position of the first part of element `j` of line `line`. Each line has `length` elements.
  size_t place(int64_t j, int64_t line, int64_t length, int64_t parts) const {
    return static_cast<size_t>((contiguous_ ? line * length + j : j * lines_ + line) * parts);
  }

 private:
  std::vector<int64_t> dims(int64_t length, bool pairs) const {
    std::vector<int64_t> list = contiguous_ ? std::vector{lines_, length} : std::vector{length, lines_};
    if (pairs) list.push_back(2);
    return list;
  }
  double most() const { return (sizeof(T) == 4 ? 4e-7 : 2e-14) * std::sqrt(static_cast<double>(n_)) * 4; }

  std::vector<T> run(int32_t form, bool inverse, const std::vector<int64_t>& to, const std::vector<int64_t>& from,
                     std::vector<T>* src, double scale) {
    constexpr int32_t kDType = sizeof(T) == 4 ? EP_DTYPE_f32 : EP_DTYPE_f64;
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_fft, {dense(EP_ROLE_DST, kDType, to), dense(EP_ROLE_SRC, kDType, from)});
    desc.attributes.fft = {form, contiguous_ ? 1 : 0, inverse ? 1 : 0, 0};
    size_t count = 1;
    for (const int64_t dim : to) count *= static_cast<size_t>(dim);
    std::vector<T> dst(count, static_cast<T>(NAN));
    ep_scalar factor{};
    factor.dtype = EP_DTYPE_f64;
    factor.value.f64 = scale;
    EXPECT_EQ(run_once(cpu_, desc, {dst.data(), src->data()}, {factor}).status, EP_STATUS_OK) << cpu_.host.sentence();
    return dst;
  }

  OpenProvider& cpu_;
  int64_t lines_, n_, half_;
  bool contiguous_;
  std::mt19937 engine_{7};
};

template <class T>
void check_all(OpenProvider* cpu, int64_t lines, int64_t n, bool contiguous) {
  SCOPED_TRACE(testing::Message() << lines << (contiguous ? " contiguous" : " strided") << " lines of " << n
                                  << " numbers of " << sizeof(T) << " bytes");
  Transforms<T> transforms(cpu, lines, n, contiguous);
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

class Fourier : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    cpu_ = open_on_target(GetParam());
    if (cpu_ == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  }

  void check(std::initializer_list<int64_t> lengths, std::initializer_list<int64_t> lines) {
    for (const int64_t n : lengths) {
      for (const int64_t count : lines) {
        for (const bool contiguous : {false, true}) {
          check_all<float>(cpu_.get(), count, n, contiguous);
          check_all<double>(cpu_.get(), count, n, contiguous);
        }
      }
    }
  }

  // Checks that the numbers `given` in the second of many real lines do not change the spectra of the others.
  template <class T>
  void check_apart(int64_t n, T given) {
    SCOPED_TRACE(testing::Message() << "lines of " << n << " numbers of " << sizeof(T) << " bytes beside " << given);
    constexpr int64_t lines = 40;
    Transforms<T> transforms(cpu_.get(), lines, n, true);
    std::vector<T> numbers = transforms.random(1);
    const std::vector<T> wanted = transforms.to_half(numbers);
    for (int64_t j = 0; j < n; ++j) numbers[transforms.place(j, 1, n, 1)] = given;
    const std::vector<T> half = transforms.to_half(numbers), back = transforms.to_real(half, 1);
    const std::vector<T> wanted_back = transforms.to_real(wanted, 1);
    for (int64_t line = 0; line < lines; ++line) {
      if (line == 1) continue;
      for (int64_t k = 0; k < n / 2 + 1; ++k) {
        const size_t at = transforms.place(k, line, n / 2 + 1, 2);
        ASSERT_EQ(half[at], wanted[at]) << "line " << line << ", frequency " << k;
        ASSERT_EQ(half[at + 1], wanted[at + 1]) << "line " << line << ", frequency " << k;
      }
      for (int64_t j = 0; j < n; ++j) {
        const size_t at = transforms.place(j, line, n, 1);
        ASSERT_EQ(back[at], wanted_back[at]) << "line " << line << ", " << j;
      }
    }
  }

  std::unique_ptr<OpenProvider> cpu_;
};

TEST_P(Fourier, OfSmoothLengths) { check({2, 4, 6, 15, 36, 49, 100, 243, 256, 1000, 1024}, {1, 2, 3, 17, 40}); }
TEST_P(Fourier, OfLongSmoothLengths) { check({2187, 4096, 30030, 65536}, {1, 3}); }
TEST_P(Fourier, OfMiddlingPrimeFactors) {
  check({7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 59, 61, 2 * 17, 17 * 19, 8 * 23, 31 * 37, 4 * 61}, {1, 3, 33});
}
TEST_P(Fourier, OfLengthsWithALargePrimeFactor) { check({67, 1009, 2 * 1009, 2 * 67 * 71, 10007}, {1, 2, 5}); }

// All sums of products would take a minute.
TEST_P(Fourier, OfALongPrimeLength) { check_all<double>(cpu_.get(), 1, 100003, true); }

TEST_P(Fourier, KeepsLinesApart) {
  for (const int64_t n : {8, 15, 100, 1009}) {
    check_apart<float>(n, NAN);
    check_apart<float>(n, 1e30F);
    check_apart<double>(n, INFINITY);
    check_apart<double>(n, 1e200);
  }
}

// Fewer lines than threads: the threads share each line.
TEST(FourierOnTwoThreads, SharesALine) {
  OpenProvider cpu("cpu");
  for (const int64_t n : {30030, 65536, 10007}) {
    for (const int64_t lines : {1, 3}) check_all<float>(&cpu, lines, n, true);
    check_all<double>(&cpu, 1, n, false);
  }
}

INSTANTIATE_TEST_SUITE_P(Target, Fourier, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
