// Products in blocks, for every dtype and layout that other implementations refuse: on every dispatch target and on
// one, two and five threads, against loops in long double or in integers. The bits do not depend on the split.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "primitives/text/format.h"
#include "sdk/provider/float_formats.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

// The order of a matrix in memory.
enum class Order { rows, columns, every_other, one_row, one_column };

struct Product {
  int64_t batch, m, n, k;
  Order a = Order::rows, b = Order::rows;
  bool bias = false, constant = false, relu = false;
};

int64_t size_of(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_i8:
    case EP_DTYPE_u8: return 1;
    case EP_DTYPE_i16:
    case EP_DTYPE_u16:
    case EP_DTYPE_f16:
    case EP_DTYPE_bf16: return 2;
    case EP_DTYPE_i32:
    case EP_DTYPE_u32:
    case EP_DTYPE_f32: return 4;
    default: return 8;
  }
}
bool is_float(int32_t dtype) {
  return dtype == EP_DTYPE_f16 || dtype == EP_DTYPE_bf16 || dtype == EP_DTYPE_f32 || dtype == EP_DTYPE_f64;
}

template <class T>
T read(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
void write(char* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

// Elements of one dtype, and their values. Values of integers are kept modulo 2^64.
struct Elements {
  int32_t dtype;
  std::vector<char> bytes;

  Elements(int32_t dtype_in, int64_t count, std::mt19937_64* generator)
      : dtype(dtype_in), bytes(static_cast<size_t>(count * size_of(dtype_in)), char{0x7f}) {
    if (generator == nullptr) return;
    std::normal_distribution<double> numbers;
    for (int64_t i = 0; i < count; ++i) {
      char* const at = bytes.data() + i * size_of(dtype);
      const double number = numbers(*generator);
      switch (dtype) {
        case EP_DTYPE_f64: write(at, number); break;
        case EP_DTYPE_f32: write(at, static_cast<float>(number)); break;
        case EP_DTYPE_f16: write(at, static_cast<uint16_t>(F16::from_f32(static_cast<float>(number)))); break;
        case EP_DTYPE_bf16: write(at, bf16_from_f32(static_cast<float>(number))); break;
        default: {
          const uint64_t bits = (*generator)();
          std::memcpy(at, &bits, static_cast<size_t>(size_of(dtype)));
        }
      }
    }
  }
  long double number(int64_t i) const {
    const char* const at = bytes.data() + i * size_of(dtype);
    switch (dtype) {
      case EP_DTYPE_f64: return read<double>(at);
      case EP_DTYPE_f32: return read<float>(at);
      case EP_DTYPE_f16: return F16::to_f32(read<uint16_t>(at));
      default: return bf16_to_f32(read<uint16_t>(at));
    }
  }
  uint64_t integer(int64_t i) const {
    const char* const at = bytes.data() + i * size_of(dtype);
    switch (dtype) {
      case EP_DTYPE_i8: return static_cast<uint64_t>(read<int8_t>(at));
      case EP_DTYPE_u8: return read<uint8_t>(at);
      case EP_DTYPE_i16: return static_cast<uint64_t>(read<int16_t>(at));
      case EP_DTYPE_u16: return read<uint16_t>(at);
      case EP_DTYPE_i32: return static_cast<uint64_t>(read<int32_t>(at));
      case EP_DTYPE_u32: return read<uint32_t>(at);
      default: return read<uint64_t>(at);
    }
  }
};

std::vector<int64_t> strides_of(Order order, int64_t rows, int64_t columns) {
  switch (order) {
    case Order::rows: return {rows * columns, columns, 1};
    case Order::columns: return {rows * columns, 1, rows};
    case Order::every_other: return {2 * rows * columns, 2 * columns, 2};
    case Order::one_row: return {columns, 0, 1};
    default: return {rows, 1, 0};
  }
}
int64_t count_of(const std::vector<int64_t>& strides, int64_t batch, int64_t rows, int64_t columns) {
  return 1 + (batch - 1) * strides[0] + (rows - 1) * strides[1] + (columns - 1) * strides[2];
}

constexpr int32_t every_dtype[] = {EP_DTYPE_f64, EP_DTYPE_f32, EP_DTYPE_f16, EP_DTYPE_bf16, EP_DTYPE_i8,  EP_DTYPE_u8,
                                   EP_DTYPE_i16, EP_DTYPE_u16, EP_DTYPE_i32, EP_DTYPE_u32,  EP_DTYPE_i64, EP_DTYPE_u64};

class BlockedMatmul : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (open_on_target(GetParam()) == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
    for (const int32_t threads : {1, 2, 5}) {
      cpus_.push_back(std::make_unique<OpenProvider>("cpu", Settings{{"simd", GetParam()}}, threads));
    }
  }

  void compare(const Product& one, int32_t dtype, int32_t dst_dtype) {
    const auto [batch, m, n, k, order_a, order_b, has_bias, constant, relu] = one;
    const std::string label = fmt::format("{} x {} x {} x {} of dtype {} to {}, orders {} and {}{}{}{}", batch, m, k, n,
                                          dtype, dst_dtype, static_cast<int>(order_a), static_cast<int>(order_b),
                                          has_bias ? ", bias" : "", constant ? ", constant" : "", relu ? ", relu" : "");
    const std::vector<int64_t> a = strides_of(order_a, m, k), b = strides_of(order_b, k, n), c = {m * n, n, 1};
    std::mt19937_64 generator(23);
    Elements src(dtype, count_of(a, batch, m, k), &generator), matrix(dtype, count_of(b, batch, k, n), &generator);
    Elements bias(dst_dtype, n, &generator);
    std::vector<ep_operand_desc> operands{strided(EP_ROLE_DST, dst_dtype, {batch, m, n}, c),
                                          strided(EP_ROLE_SRC, dtype, {batch, m, k}, a),
                                          strided(EP_ROLE_SRC_B, dtype, {batch, k, n}, b)};
    if (constant) operands[2].flags = EP_OPERAND_FLAG_CONSTANT;
    if (has_bias) operands.push_back(strided(EP_ROLE_BIAS, dst_dtype, {batch, m, n}, {0, 0, 1}));
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_matmul, operands);
    std::vector<ep_scalar> scalars(6);
    for (ep_scalar& scalar : scalars) scalar.dtype = EP_DTYPE_f64;
    if (relu) then_relu(&desc);
    std::vector<char> first;
    for (const std::unique_ptr<OpenProvider>& cpu : cpus_) {
      Elements dst(dst_dtype, batch * m * n, nullptr);
      std::vector<void*> addresses{dst.bytes.data(), src.bytes.data(), matrix.bytes.data()};
      if (has_bias) addresses.push_back(bias.bytes.data());
      const LaunchResult run = run_once(*cpu, desc, addresses, scalars);
      ASSERT_EQ(run.status, EP_STATUS_OK) << label << ": " << cpu->host.sentence();
      ASSERT_NE(run.implementation, "plain") << label;
      if (first.empty()) {
        first = dst.bytes;
      } else {
        ASSERT_EQ(dst.bytes, first) << label << " on more threads";
        continue;
      }
      for (int64_t i = 0; i < batch * m * n; ++i) {
        const int64_t left = i / n / m * a[0] + i / n % m * a[1], right = i / n / m * b[0] + i % n * b[2];
        if (is_float(dst_dtype)) {
          check_float(dst, i, src, left, a[2], matrix, right, b[1], k, has_bias ? &bias : nullptr, i % n, relu, label);
        } else {
          uint64_t wanted = has_bias ? bias.integer(i % n) : 0;
          for (int64_t p = 0; p < k; ++p) wanted += src.integer(left + p * a[2]) * matrix.integer(right + p * b[1]);
          const uint64_t kept = ~uint64_t{0} >> (64 - 8 * size_of(dst_dtype));
          ASSERT_EQ(dst.integer(i) & kept, wanted & kept) << label << " at " << i << " by " << run.implementation;
        }
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }

  static void check_float(const Elements& dst, int64_t i, const Elements& src, int64_t left, int64_t a_step,
                          const Elements& matrix, int64_t right, int64_t b_step, int64_t k, const Elements* bias,
                          int64_t column, bool relu, const std::string& label) {
    long double wanted = bias == nullptr ? 0 : bias->number(column), size = std::abs(wanted);
    for (int64_t p = 0; p < k; ++p) {
      const long double part = src.number(left + p * a_step) * matrix.number(right + p * b_step);
      wanted += part;
      size += std::abs(part);
    }
    if (relu) wanted = std::max(wanted, 0.0L);
    const long double rounding = dst.dtype == EP_DTYPE_f16 ? 0x1p-11L : dst.dtype == EP_DTYPE_bf16 ? 0x1p-8L : 0;
    const long double bound = size * (dst.dtype == EP_DTYPE_f64 ? 1e-14L : 4e-6L) + std::abs(wanted) * rounding;
    ASSERT_LE(std::abs(dst.number(i) - wanted), bound) << label << " at " << i;
  }

  std::vector<std::unique_ptr<OpenProvider>> cpus_;
};

TEST_P(BlockedMatmul, EqualsLoopsOfAnyDtypeOnAnyNumberOfThreads) {
  for (const int32_t dtype : {EP_DTYPE_f64, EP_DTYPE_f16, EP_DTYPE_i8, EP_DTYPE_u8, EP_DTYPE_i16, EP_DTYPE_u16,
                              EP_DTYPE_i32, EP_DTYPE_u32, EP_DTYPE_i64, EP_DTYPE_u64}) {
    for (const int64_t m : {2, 5, 13, 49, 194}) {
      for (const int64_t n : {3, 16, 33, 130}) {
        compare({1, m, n, 40, Order::rows, (m + n) % 2 == 0 ? Order::columns : Order::rows, m % 3 == 2, n % 2 == 0},
                dtype, dtype);
      }
    }
    for (const int64_t k : {1, 3, 255, 256, 257, 600}) {
      compare({1, 50, 35, k, Order::rows, k % 2 == 0 ? Order::columns : Order::rows, k % 3 == 0, k == 257}, dtype,
              dtype);
    }
    for (const int64_t batch : {2, 7}) {
      compare({batch, 51, 50, 21, Order::rows, batch == 7 ? Order::columns : Order::rows, batch == 7}, dtype, dtype);
    }
  }
  compare({1, 30, 600, 300}, EP_DTYPE_f64, EP_DTYPE_f64);
  compare({1, 3, 17, 8200}, EP_DTYPE_f16, EP_DTYPE_f16);
}

TEST_P(BlockedMatmul, EqualsLoopsForVectorsAndFewColumnsInBatches) {
  for (const int32_t dtype : every_dtype) {
    for (const Order b : {Order::rows, Order::columns, Order::every_other}) {
      for (const int64_t batch : {1, 5}) {
        compare({batch, 130, 1, 129, Order::rows, b, batch == 5}, dtype, dtype);
        compare({batch, 1, 131, 128, Order::rows, b, batch == 5}, dtype, dtype);
        compare({batch, 67, 3, 200, Order::rows, b, batch == 1}, dtype, dtype);
        compare({batch, 3, 4, 1000, Order::rows, b}, dtype, dtype);
      }
    }
  }
}

TEST_P(BlockedMatmul, EqualsLoopsForShortAndLongRowsTimesAVector) {
  for (const int32_t dtype : every_dtype) {
    for (const int64_t k : {1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 4099}) {
      for (const int64_t m : {1, 3, 70, 513}) {
        if (m * k > 100'000) continue;
        compare({1, m, 1, k, Order::rows, Order::rows, m == 3}, dtype, dtype);
        compare({1, m, 1, k, Order::rows, Order::every_other, m == 70}, dtype, dtype);
        compare({1, m, 2, k}, dtype, dtype);
        compare({1, 1, m, k, Order::every_other, Order::columns, m == 513}, dtype, dtype);
      }
    }
    compare({1, 1, 1, 40'000}, dtype, dtype);
    compare({1, 1, 1, 40'001, Order::every_other, Order::rows, true}, dtype, dtype);
  }
}

// The rows of a short product are read with whole vectors, past their ends. A NaN there must not spread.
TEST_P(BlockedMatmul, KeepsNanInItsRow) {
  for (const int64_t k : {1, 2, 3, 8, 15, 17, 33, 70}) {
    constexpr int64_t m = 2049;
    std::vector<float> src(static_cast<size_t>(m * k), 2.0F), vector(static_cast<size_t>(k), 3.0F), dst(m, 0.0F);
    for (int64_t i = 0; i < m; i += 2) src[static_cast<size_t>(i * k)] = std::numeric_limits<float>::quiet_NaN();
    for (int64_t i = 1; i < m; i += 2) src[static_cast<size_t>(i * k + k - 1)] = 1e-41F;
    const ep_primitive_desc desc = descriptor(
        EP_PRIMITIVE_matmul, {dense(EP_ROLE_DST, EP_DTYPE_f32, {m, 1}), dense(EP_ROLE_SRC, EP_DTYPE_f32, {m, k}),
                              dense(EP_ROLE_SRC_B, EP_DTYPE_f32, {k, 1})});
    const LaunchResult run = run_once(*cpus_[0], desc, {dst.data(), src.data(), vector.data()}, {});
    ASSERT_EQ(run.status, EP_STATUS_OK) << cpus_[0]->host.sentence();
    for (int64_t i = 0; i < m; ++i) {
      const float got = dst[static_cast<size_t>(i)];
      const float wanted = k == 1 ? 3.0F * 1e-41F : static_cast<float>(k - 1) * 6.0F;
      ASSERT_TRUE(i % 2 == 0 ? std::isnan(got) : got == wanted) << k << " products, row " << i << ": " << got;
    }
  }
}

TEST_P(BlockedMatmul, EqualsLoopsForBatchesOfSmallMatrices) {
  for (const int32_t dtype : every_dtype) {
    for (const Order b : {Order::rows, Order::columns, Order::every_other, Order::one_row}) {
      for (const int64_t batch : {8, 100}) {
        compare({batch, 3, 3, 3, Order::rows, b}, dtype, dtype);
        compare({batch, 8, 9, 7, Order::rows, b}, dtype, dtype);
        compare({batch, 16, 15, 17, Order::columns, b}, dtype, dtype);
        compare({batch, 2, 40, 5, Order::rows, b, true}, dtype, dtype);
      }
    }
  }
}

TEST_P(BlockedMatmul, ReadsMatricesInAnyOrder) {
  const Order orders[] = {Order::rows, Order::columns, Order::every_other, Order::one_row, Order::one_column};
  for (const int32_t dtype : every_dtype) {
    for (const Order a : orders) {
      for (const Order b : orders) {
        if (dtype == EP_DTYPE_f32 && a <= Order::columns && b <= Order::columns) continue;  // oneDNN
        compare({2, 67, 70, 90, a, b, a == Order::columns}, dtype, dtype);
      }
    }
  }
}

TEST_P(BlockedMatmul, ReadsDtypesThatDifferFromTheResult) {
  compare({1, 33, 65, 70}, EP_DTYPE_f16, EP_DTYPE_f32);
  compare({1, 33, 65, 70, Order::columns, Order::columns, true}, EP_DTYPE_f16, EP_DTYPE_bf16);
  for (const int32_t dst : {EP_DTYPE_i16, EP_DTYPE_i32, EP_DTYPE_i64}) {
    compare({1, 33, 65, 70, Order::rows, Order::columns, true}, EP_DTYPE_u8, dst);
    compare({1, 33, 65, 70, Order::rows, Order::rows, false, true}, EP_DTYPE_i8, dst);
  }
}

TEST_P(BlockedMatmul, RunsEpiloguesBeforeItRounds) {
  for (const int64_t n : {70, 600})
    compare({2, 33, n, 70, Order::rows, Order::rows, true, false, true}, EP_DTYPE_f16, EP_DTYPE_f16);
  compare({1, 33, 45, 70, Order::rows, Order::rows, true, true, true}, EP_DTYPE_f16, EP_DTYPE_f16);
}

INSTANTIATE_TEST_SUITE_P(Target, BlockedMatmul, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
