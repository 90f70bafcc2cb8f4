// Eigenvalues and singular values of f32 matrices, on every dispatch target: the product of vectors and values is the
// matrix, vectors are orthonormal, values are sorted, and are the same without vectors; all in double. Sides around the
// limit at which the cpu provider changes its method, tall and wide matrices, huge and tiny numbers, values that are
// equal or 0, and matrices whose other triangle is NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "sdk/provider/descriptor.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

using Numbers = std::vector<float>;

struct Sides {
  int64_t m, n;
};

Numbers poisoned(int64_t count) { return Numbers(static_cast<size_t>(count), NAN); }

// Row-major.
double at(const Numbers& of, int64_t width, int64_t i, int64_t j) {
  return static_cast<double>(of[static_cast<size_t>(i * width + j)]);
}

double greatest(const Numbers& of) {
  double most = 0;
  for (const float x : of) most = std::max(most, std::abs(static_cast<double>(x)));
  return most;
}

ep_primitive_desc described(int32_t op, const std::vector<ep_operand_desc>& operands, int32_t flags = 0) {
  ep_primitive_desc desc = descriptor(EP_PRIMITIVE_linear_algebra, operands);
  desc.attributes.linear_algebra.op = op;
  desc.attributes.linear_algebra.flags = flags;
  return desc;
}

ep_operand_desc f32(int32_t role, const std::vector<int64_t>& dims) { return dense(role, EP_DTYPE_f32, dims); }

class Spectrum : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    cpu_ = open_on_target(GetParam());
    if (cpu_ == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  }

  Numbers random(const Sides& sides, double scale) {
    Numbers values(static_cast<size_t>(sides.m * sides.n));
    std::uniform_real_distribution<double> distribution(-scale, scale);
    for (float& value : values) value = static_cast<float>(distribution(engine_));
    return values;
  }

  static double bound(const Sides& sides) { return 1e-6 * std::sqrt(static_cast<double>(sides.m + sides.n)); }

  void expect_orthonormal_columns(const Numbers& vectors, const Sides& sides) {
    for (int64_t i = 0; i < sides.n; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        double product = 0;
        for (int64_t row = 0; row < sides.m; ++row)
          product += at(vectors, sides.n, row, i) * at(vectors, sides.n, row, j);
        ASSERT_NEAR(product, i == j ? 1 : 0, 2 * bound(sides)) << "columns " << i << " and " << j;
      }
    }
  }

  void check_singular_values(const Sides& sides, const Numbers& a) {
    SCOPED_TRACE(testing::Message() << sides.m << " x " << sides.n << ", numbers up to " << greatest(a));
    const auto [m, n] = sides;
    const int64_t k = std::min(m, n);
    Numbers src = a, values = poisoned(k), alone = poisoned(k), u = poisoned(m * k), vh = poisoned(k * n);
    ASSERT_EQ(run_once(*cpu_,
                       described(EP_LINEAR_SVD, {f32(EP_ROLE_DST, {k}), f32(EP_ROLE_DST_VECTORS, {m, k}),
                                                 f32(EP_ROLE_DST_VECTORS_H, {k, n}), f32(EP_ROLE_SRC, {m, n})}),
                       {values.data(), u.data(), vh.data(), src.data()})
                  .status,
              EP_STATUS_OK)
        << cpu_->host.sentence();
    ASSERT_EQ(run_once(*cpu_, described(EP_LINEAR_SVD, {f32(EP_ROLE_DST, {k}), f32(EP_ROLE_SRC, {m, n})}),
                       {alone.data(), src.data()})
                  .status,
              EP_STATUS_OK);
    EXPECT_EQ(src, a);
    const double scale = std::max<double>(at(values, 1, 0, 0), 1e-37);
    for (int64_t i = 0; i < k; ++i) {
      ASSERT_GE(at(values, 1, i, 0), 0);
      if (i > 0) {
        ASSERT_LE(at(values, 1, i, 0), at(values, 1, i - 1, 0)) << "value " << i;
      }
      ASSERT_NEAR(at(values, 1, i, 0) / scale, at(alone, 1, i, 0) / scale, bound(sides)) << "value " << i;
    }
    expect_orthonormal_columns(u, {m, k});
    Numbers v(vh.size());
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < n; ++j) v[static_cast<size_t>(j * k + i)] = vh[static_cast<size_t>(i * n + j)];
    }
    expect_orthonormal_columns(v, {n, k});
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double product = 0;
        for (int64_t l = 0; l < k; ++l) product += at(u, k, i, l) * at(values, 1, l, 0) * at(v, k, j, l);
        ASSERT_NEAR(product / scale, at(a, n, i, j) / scale, bound(sides)) << "element " << i << ", " << j;
      }
    }
  }

  // For the symmetric matrix given by one triangle of `a`; the other triangle is NaN.
  void check_eigenvalues(int64_t n, const Numbers& a, bool upper) {
    SCOPED_TRACE(testing::Message() << n << " x " << n << ", numbers up to " << greatest(a) << ", upper " << upper);
    Numbers src = a, symmetric = a;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        if (upper ? i <= j : i >= j) continue;
        src[static_cast<size_t>(i * n + j)] = NAN;
        symmetric[static_cast<size_t>(i * n + j)] = a[static_cast<size_t>(j * n + i)];
      }
    }
    Numbers values = poisoned(n), alone = poisoned(n), vectors = poisoned(n * n);
    const int32_t flags = upper ? EP_LINEAR_FLAG_UPPER : 0;
    ASSERT_EQ(
        run_once(*cpu_,
                 described(EP_LINEAR_EIGEN,
                           {f32(EP_ROLE_DST, {n}), f32(EP_ROLE_DST_VECTORS, {n, n}), f32(EP_ROLE_SRC, {n, n})}, flags),
                 {values.data(), vectors.data(), src.data()})
            .status,
        EP_STATUS_OK)
        << cpu_->host.sentence();
    ASSERT_EQ(run_once(*cpu_, described(EP_LINEAR_EIGEN, {f32(EP_ROLE_DST, {n}), f32(EP_ROLE_SRC, {n, n})}, flags),
                       {alone.data(), src.data()})
                  .status,
              EP_STATUS_OK);
    const double scale = std::max(greatest(values), 1e-37);
    for (int64_t i = 0; i < n; ++i) {
      if (i > 0) {
        ASSERT_GE(at(values, 1, i, 0), at(values, 1, i - 1, 0)) << "value " << i;
      }
      ASSERT_NEAR(at(values, 1, i, 0) / scale, at(alone, 1, i, 0) / scale, 2 * bound({n, n})) << "value " << i;
    }
    expect_orthonormal_columns(vectors, {n, n});
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        double product = 0;
        for (int64_t l = 0; l < n; ++l) product += at(vectors, n, i, l) * at(values, 1, l, 0) * at(vectors, n, j, l);
        ASSERT_NEAR(product / scale, at(symmetric, n, i, j) / scale, bound({n, n})) << "element " << i << ", " << j;
      }
    }
  }

  std::mt19937 engine_{29};
  std::unique_ptr<OpenProvider> cpu_;
};

TEST_P(Spectrum, SingularValuesOfManySides) {
  for (const Sides& sides :
       {Sides{1, 1}, Sides{1, 5}, Sides{5, 1}, Sides{4, 4}, Sides{16, 16}, Sides{17, 17}, Sides{33, 20}, Sides{20, 33},
        Sides{47, 3}, Sides{128, 127}, Sides{127, 128}, Sides{129, 30}, Sides{130, 130}, Sides{200, 193},
        Sides{192, 250}, Sides{401, 200}, Sides{193, 390}}) {
    check_singular_values(sides, random(sides, 3));
  }
}

TEST_P(Spectrum, EigenvaluesOfManySides) {
  for (const int64_t n : {1, 2, 3, 5, 16, 17, 31, 32, 33, 64, 65, 100, 128, 129, 191, 192, 257, 300}) {
    for (const bool upper : {false, true}) check_eigenvalues(n, random({n, n}, 3), upper);
  }
}

// Squares of such numbers overflow or underflow in f32.
TEST_P(Spectrum, OfHugeAndTinyNumbers) {
  for (const double scale : {1e36, 1e30, 1e-30}) {
    for (const int64_t n : {21, 90, 200}) {
      check_singular_values({n + 4, n}, random({n + 4, n}, scale));
      check_eigenvalues(n, random({n, n}, scale), false);
    }
  }
}

TEST_P(Spectrum, OfEqualValuesAndZeros) {
  for (const int64_t n : {19, 100, 210}) {
    const auto filled = [n](const auto& element) {
      Numbers a(static_cast<size_t>(n * n));
      for (int64_t i = 0; i < n * n; ++i) a[static_cast<size_t>(i)] = static_cast<float>(element(i / n, i % n));
      return a;
    };
    const Numbers factor = random({n, 1}, 1);
    for (const Numbers& a :
         {filled([](int64_t, int64_t) { return 0; }), filled([](int64_t i, int64_t j) { return i == j ? 2 : 0; }),
          filled([&](int64_t i, int64_t j) { return at(factor, 1, i, 0) * at(factor, 1, j, 0); }),
          filled([](int64_t i, int64_t j) { return i == j ? static_cast<double>(i) : 0.0; }),
          filled([n](int64_t i, int64_t j) {  // pairs of values that agree in all digits
            return i == j ? std::abs(static_cast<double>(i) - static_cast<double>(n / 2))
                          : (i == j + 1 || j == i + 1 ? 1.0 : 0.0);
          })}) {
      check_singular_values({n, n}, a);
      check_eigenvalues(n, a, false);
    }
  }
}

TEST_P(Spectrum, RefusesNumbersThatAreNotFinite) {
  for (const int64_t n : {9, 100, 200}) {
    Numbers src = random({n, n}, 1), values = poisoned(n);
    src[static_cast<size_t>(n * n / 2 / n * n + 1)] = INFINITY;
    for (const int32_t op : {EP_LINEAR_SVD, EP_LINEAR_EIGEN}) {
      EXPECT_EQ(
          run_once(*cpu_, described(op, {f32(EP_ROLE_DST, {n}), f32(EP_ROLE_SRC, {n, n})}), {values.data(), src.data()})
              .status,
          EP_STATUS_FAULT);
      EXPECT_EQ(values, Numbers(static_cast<size_t>(n), 0));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Target, Spectrum, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

// Only the matrix decides how sums are split.
TEST(SpectrumOfThreads, BitsDoNotDependOnThem) {
  if (open_on_target("avx3") == nullptr) GTEST_SKIP() << "without AVX-512 bits of oneDNN's products depend on threads";
  constexpr int64_t n = 450;
  std::mt19937 engine{31};
  std::uniform_real_distribution<float> distribution(-1, 1);
  Numbers src(static_cast<size_t>(n * n));
  for (float& value : src) value = distribution(engine);
  std::vector<Numbers> found;
  for (const int32_t threads : {1, 2}) {
    OpenProvider cpu("cpu", {}, threads);
    for (int time = 0; time < 3; ++time) {
      Numbers values = poisoned(n);
      ASSERT_EQ(run_once(cpu, described(EP_LINEAR_EIGEN, {f32(EP_ROLE_DST, {n}), f32(EP_ROLE_SRC, {n, n})}),
                         {values.data(), src.data()})
                    .status,
                EP_STATUS_OK);
      found.push_back(std::move(values));
    }
  }
  for (const Numbers& values : found) EXPECT_EQ(values, found[0]);
}

}  // namespace
}  // namespace tenon::provider
