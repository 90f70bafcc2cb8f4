// Products of f64, which are split into one block per thread: on every dispatch target and on one, two and five
// threads, against loops in long double. The bits do not depend on the split.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "primitives/text/format.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

struct Product {
  int64_t batch, m, n, k;
  bool transposed;  // the second matrices are stored by columns
  bool bias;
};

class F64Matmul : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (open_on_target(GetParam()) == nullptr) GTEST_SKIP() << "this processor has no " << GetParam();
    for (const int32_t threads : {1, 2, 5}) {
      cpus_.push_back(std::make_unique<OpenProvider>("cpu", Settings{{"simd", GetParam()}}, threads));
    }
  }

  std::vector<double> product(OpenProvider& cpu, const Product& one, std::vector<double>* src,
                              std::vector<double>* matrix, std::vector<double>* bias) {
    const auto [batch, m, n, k, transposed, has_bias] = one;
    std::vector<double> dst(static_cast<size_t>(batch * m * n), std::numeric_limits<double>::quiet_NaN());
    const std::vector<int64_t> order =
        transposed ? std::vector<int64_t>{k * n, 1, k} : std::vector<int64_t>{k * n, n, 1};
    std::vector<ep_operand_desc> operands{dense(EP_ROLE_DST, EP_DTYPE_f64, {batch, m, n}),
                                          dense(EP_ROLE_SRC, EP_DTYPE_f64, {batch, m, k}),
                                          strided(EP_ROLE_SRC_B, EP_DTYPE_f64, {batch, k, n}, order)};
    std::vector<void*> addresses{dst.data(), src->data(), matrix->data()};
    if (has_bias) {
      operands.push_back(strided(EP_ROLE_BIAS, EP_DTYPE_f64, {batch, m, n}, {0, 0, 1}));
      addresses.push_back(bias->data());
    }
    const LaunchResult run = run_once(cpu, descriptor(EP_PRIMITIVE_matmul, operands), addresses);
    EXPECT_EQ(run.status, EP_STATUS_OK) << cpu.host.sentence();
    return dst;
  }

  void compare(const Product& one) {
    const auto [batch, m, n, k, transposed, has_bias] = one;
    const std::string label = fmt::format("{} x {} x {} x {}{}{}", batch, m, k, n, transposed ? ", transposed" : "",
                                          has_bias ? ", bias" : "");
    std::mt19937_64 generator(23);
    std::normal_distribution<double> numbers;
    std::vector<double> src(static_cast<size_t>(batch * m * k)), matrix(static_cast<size_t>(batch * k * n)),
        bias(static_cast<size_t>(n));
    for (std::vector<double>* list : {&src, &matrix, &bias}) {
      for (double& number : *list) number = numbers(generator);
    }
    const std::vector<double> alone = product(*cpus_[0], one, &src, &matrix, &bias);
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          long double wanted = has_bias ? bias[static_cast<size_t>(j)] : 0, size = std::abs(wanted);
          for (int64_t p = 0; p < k; ++p) {
            const long double part = static_cast<long double>(src[static_cast<size_t>((b * m + i) * k + p)]) *
                                     matrix[static_cast<size_t>(b * k * n + (transposed ? j * k + p : p * n + j))];
            wanted += part;
            size += std::abs(part);
          }
          const size_t at = static_cast<size_t>((b * m + i) * n + j);
          ASSERT_LE(std::abs(alone[at] - wanted), size * 1e-14L) << label << " at " << b << ", " << i << ", " << j;
        }
      }
    }
    for (size_t i = 1; i < cpus_.size(); ++i) {
      ASSERT_EQ(product(*cpus_[i], one, &src, &matrix, &bias), alone) << label << " on more threads";
    }
  }

  std::vector<std::unique_ptr<OpenProvider>> cpus_;
};

TEST_P(F64Matmul, EqualsLoopsInLongDoubleOnAnyNumberOfThreads) {
  for (const int64_t m : {2, 5, 6, 47, 97, 193, 260}) {
    for (const int64_t n : {3, 16, 33, 130, 257}) compare({1, m, n, 40, (m + n) % 2 == 0, m % 3 == 2});
  }
  for (const int64_t k : {1, 191, 192, 193, 390}) compare({1, 100, 70, k, k % 2 == 0, k % 3 == 0});
  for (const int64_t batch : {2, 3, 7}) compare({batch, 101, 50, 21, batch == 3, batch == 7});
}

INSTANTIATE_TEST_SUITE_P(Target, F64Matmul, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
