// Least squares over f32, on every dispatch target, in double: the residual is orthogonal to the columns, and the
// solution is in the row space, so it is the one of least norm. Sides around the limit at which the cpu provider
// changes its method, and matrices of full and of lower rank.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

// Row-major.
struct Table {
  int64_t rows, columns;
  std::vector<double> numbers;

  Table(int64_t m, int64_t n) : rows(m), columns(n), numbers(static_cast<size_t>(m * n)) {}
  double& at(int64_t i, int64_t j) { return numbers[static_cast<size_t>(i * columns + j)]; }
  double at(int64_t i, int64_t j) const { return numbers[static_cast<size_t>(i * columns + j)]; }
};

Table turned(const Table& a) {
  Table result(a.columns, a.rows);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.columns; ++j) result.at(j, i) = a.at(i, j);
  }
  return result;
}

Table product(const Table& a, const Table& b) {
  Table result(a.rows, b.columns);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t k = 0; k < a.columns; ++k) {
      for (int64_t j = 0; j < b.columns; ++j) result.at(i, j) += a.at(i, k) * b.at(k, j);
    }
  }
  return result;
}

// x with a x = b, by elimination; `a` is positive definite.
Table solved(Table a, Table b) {
  const int64_t n = a.rows;
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = a.at(i, k) / a.at(k, k);
      for (int64_t j = k; j < n; ++j) a.at(i, j) -= factor * a.at(k, j);
      for (int64_t j = 0; j < b.columns; ++j) b.at(i, j) -= factor * b.at(k, j);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < b.columns; ++j) b.at(i, j) /= a.at(i, i);
  }
  return b;
}

double greatest(const Table& a) {
  double most = 0;
  for (const double x : a.numbers) most = std::max(most, std::abs(x));
  return most;
}

Table difference(Table a, const Table& b) {
  for (size_t i = 0; i < a.numbers.size(); ++i) a.numbers[i] -= b.numbers[i];
  return a;
}

std::vector<float> narrowed(Table* a) {  // narrows `a` too
  std::vector<float> result;
  for (double& x : a->numbers) {
    result.push_back(static_cast<float>(x));
    x = static_cast<double>(result.back());
  }
  return result;
}

struct Sizes {
  int64_t m, n, columns, rank;
  double scale;
};

class LeastSquares : public testing::TestWithParam<const char*> {};

TEST_P(LeastSquares, OfManySizes) {
  const auto cpu = open_on_target(GetParam());
  if (cpu == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  std::mt19937 engine(53);
  std::uniform_real_distribution<double> distribution(-1, 1);
  const auto random = [&](int64_t m, int64_t n) {
    Table a(m, n);
    for (double& x : a.numbers) x = distribution(engine);
    return a;
  };
  for (const Sizes& s :
       {Sizes{5, 3, 2, 3, 1}, Sizes{230, 192, 32, 192, 1}, Sizes{300, 200, 65, 200, 1}, Sizes{300, 200, 31, 200, 1},
        Sizes{200, 290, 40, 200, 1}, Sizes{300, 200, 40, 50, 1}, Sizes{200, 200, 40, 199, 1},
        Sizes{300, 200, 40, 200, 1e25}, Sizes{300, 200, 40, 200, 1e-25}}) {
    SCOPED_TRACE(testing::Message() << s.m << " x " << s.n << " of rank " << s.rank << ", " << s.columns
                                    << " columns, scale " << s.scale);
    const bool whole = s.rank == std::min(s.m, s.n);
    Table rows = random(s.rank, s.n);
    Table a = whole ? random(s.m, s.n) : product(random(s.m, s.rank), rows);
    for (double& x : a.numbers) x *= s.scale;
    Table b = random(s.m, s.columns), x(s.n, s.columns);
    std::vector<float> src = narrowed(&a), right = narrowed(&b), dst(x.numbers.size(), NAN);
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_linear_algebra,
                   {dense(EP_ROLE_DST, EP_DTYPE_f32, {s.n, s.columns}), dense(EP_ROLE_SRC, EP_DTYPE_f32, {s.m, s.n}),
                    dense(EP_ROLE_SRC_B, EP_DTYPE_f32, {s.m, s.columns})});
    desc.attributes.linear_algebra.op = EP_LINEAR_LEAST_SQUARES;
    ASSERT_EQ(run_once(*cpu, desc, {dst.data(), src.data(), right.data()}).status, EP_STATUS_OK)
        << cpu->host.sentence();
    for (size_t i = 0; i < dst.size(); ++i) x.numbers[i] = static_cast<double>(dst[i]);
    const Table transposed = turned(a);
    const double size = greatest(a) * greatest(a) * greatest(x) * static_cast<double>(s.m);
    EXPECT_LE(greatest(product(transposed, difference(product(a, x), b))), 1e-5 * size);
    if (whole && s.m < s.n) rows = a;
    if (whole && s.m >= s.n) continue;
    const Table across = turned(rows);
    const Table nearest = product(across, solved(product(rows, across), product(rows, x)));
    EXPECT_LE(greatest(difference(x, nearest)), 1e-3 * greatest(x));
  }
}

INSTANTIATE_TEST_SUITE_P(Target, LeastSquares, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
