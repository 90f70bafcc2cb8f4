// QR of small matrices, which the cpu provider factors with its own reflections, on every dispatch target: the product
// of Q and R is the matrix, Q has orthonormal columns, R is a triangle, and its diagonal has the signs that ep_api.h
// states. Matrices that end within a vector, tall and wide ones, complete Qs, huge and tiny numbers, triangles and
// zeros; all in double.
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

struct Sides {
  int64_t m, n;
};

class SmallQr : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    cpu_ = open_on_target(GetParam());
    if (cpu_ == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  }

  // Factors `a`, whose numbers are at most `scale`, and compares. `whole`: Q has m columns.
  void check(const Sides& sides, const std::vector<float>& a, double scale, bool whole) {
    const auto [m, n] = sides;
    SCOPED_TRACE(testing::Message() << m << " x " << n << ", numbers up to " << scale << ", whole " << whole);
    const int64_t k = whole ? m : std::min(m, n);
    std::vector<float> src = a, q(static_cast<size_t>(m * k), NAN), r(static_cast<size_t>(k * n), NAN);
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_linear_algebra, {dense(EP_ROLE_DST, EP_DTYPE_f32, {m, k}),
                                                                      dense(EP_ROLE_DST_R, EP_DTYPE_f32, {k, n}),
                                                                      dense(EP_ROLE_SRC, EP_DTYPE_f32, {m, n})});
    desc.attributes.linear_algebra.op = EP_LINEAR_QR;
    ASSERT_EQ(run_once(*cpu_, desc, {q.data(), r.data(), src.data()}).status, EP_STATUS_OK) << cpu_->host.sentence();
    const auto element = [](const std::vector<float>& of, int64_t width, int64_t i, int64_t j) {
      return static_cast<double>(of[static_cast<size_t>(i * width + j)]);
    };
    const double most = 4e-7 * std::sqrt(static_cast<double>(m + n)) * 4;
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        double product = 0;
        for (int64_t row = 0; row < m; ++row) product += element(q, k, row, i) * element(q, k, row, j);
        ASSERT_NEAR(product, i == j ? 1 : 0, most) << "columns " << i << " and " << j << " of Q";
      }
      for (int64_t j = 0; j < std::min(i, n); ++j) ASSERT_EQ(element(r, n, i, j), 0) << "below the diagonal of R";
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double product = 0;
        for (int64_t l = 0; l < k; ++l) product += element(q, k, i, l) * element(r, n, l, j);
        ASSERT_NEAR(product / scale, element(src, n, i, j) / scale, most * std::sqrt(static_cast<double>(m)))
            << "element " << i << ", " << j;
      }
    }
    // The first reflection works on the first column.
    if (m > 1 && src[static_cast<size_t>(n)] != 0) {
      EXPECT_NE(std::signbit(r[0]), std::signbit(src[0])) << r[0] << " of " << src[0];
    }
  }

  std::vector<float> random(const Sides& sides, double scale) {
    std::vector<float> values(static_cast<size_t>(sides.m * sides.n));
    std::uniform_real_distribution<double> distribution(-scale, scale);
    for (float& value : values) value = static_cast<float>(distribution(engine_));
    return values;
  }

  std::mt19937 engine_{17};
  std::unique_ptr<OpenProvider> cpu_;
};

TEST_P(SmallQr, OfManySides) {
  for (const Sides& sides :
       {Sides{1, 1}, Sides{1, 5}, Sides{5, 1}, Sides{4, 4}, Sides{16, 16}, Sides{17, 17}, Sides{20, 33}, Sides{33, 20},
        Sides{47, 3}, Sides{3, 47}, Sides{64, 64}, Sides{127, 65}, Sides{128, 128}, Sides{129, 30}, Sides{30, 129}}) {
    for (const bool whole : {false, true}) check(sides, random(sides, 3), 3, whole);
  }
}

// Squares of such numbers overflow or underflow in f32.
TEST_P(SmallQr, OfHugeAndTinyNumbers) {
  for (const double scale : {1e36, 1e30, 1e-30}) check({21, 18}, random({21, 18}, scale), scale, false);
}

TEST_P(SmallQr, OfTrianglesAndZeros) {
  const Sides sides{19, 19};
  std::vector<float> triangle = random(sides, 3);
  for (int64_t i = 0; i < sides.m; ++i) {
    for (int64_t j = 0; j < i; ++j) triangle[static_cast<size_t>(i * sides.n + j)] = 0;
  }
  check(sides, triangle, 3, false);
  std::vector<float> some = random(sides, 3);  // a column of zeros, and one that is twice another one
  for (int64_t i = 0; i < sides.m; ++i) {
    some[static_cast<size_t>(i * sides.n + 4)] = 0;
    some[static_cast<size_t>(i * sides.n + 9)] = 2 * some[static_cast<size_t>(i * sides.n + 2)];
  }
  check(sides, some, 3, false);
  check(sides, std::vector<float>(static_cast<size_t>(sides.m * sides.n), 0), 1, false);
}

INSTANTIATE_TEST_SUITE_P(Target, SmallQr, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
