// attention in several blocks of queries and keys, over each float type, compared with loops in double on every
// dispatch target: few queries and many, causal, with heads that share keys, with operands in other orders.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "primitives/text/format.h"
#include "sdk/provider/float_formats.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

struct Shape {
  int64_t heads, groups, queries, keys, width;
  bool causal, turned;  // turned: heads lie within a row, as in [batch, row, head, column]
};

std::vector<char> stored(const std::vector<double>& numbers, int32_t dtype) {
  const size_t size = dtype == EP_DTYPE_f64 ? 8 : dtype == EP_DTYPE_f32 ? 4 : 2;
  std::vector<char> bytes(numbers.size() * size);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto single = static_cast<float>(numbers[i]);
    const auto half = static_cast<uint16_t>(dtype == EP_DTYPE_f16 ? F16::from_f32(single) : bf16_from_f32(single));
    const void* const from = size == 8   ? static_cast<const void*>(&numbers[i])
                             : size == 4 ? static_cast<const void*>(&single)
                                         : static_cast<const void*>(&half);
    std::memcpy(bytes.data() + i * size, from, size);
  }
  return bytes;
}
std::vector<double> loaded(const std::vector<char>& bytes, int32_t dtype) {
  const size_t size = dtype == EP_DTYPE_f64 ? 8 : dtype == EP_DTYPE_f32 ? 4 : 2;
  std::vector<double> numbers(bytes.size() / size);
  for (size_t i = 0; i < numbers.size(); ++i) {
    float single = 0;
    uint16_t half = 0;
    if (size == 8) {
      std::memcpy(&numbers[i], bytes.data() + i * size, size);
      continue;
    }
    if (size == 4) {
      std::memcpy(&single, bytes.data() + i * size, size);
    } else {
      std::memcpy(&half, bytes.data() + i * size, size);
      single = dtype == EP_DTYPE_f16 ? F16::to_f32(half) : bf16_to_f32(half);
    }
    numbers[i] = static_cast<double>(single);
  }
  return numbers;
}

// An operand [1, heads, rows, columns], and the offset of each row in it.
struct Rows {
  int64_t heads, rows, columns;
  bool turned;
  std::vector<double> numbers;
  std::vector<char> bytes;

  Rows(int64_t heads_in, int64_t rows_in, int64_t columns_in, bool turned_in, int32_t dtype, std::mt19937_64* generator)
      : heads(heads_in), rows(rows_in), columns(columns_in), turned(turned_in) {
    std::normal_distribution<double> normal;
    numbers.resize(static_cast<size_t>(heads * rows * columns));
    for (double& number : numbers) number = normal(*generator);
    bytes = stored(numbers, dtype);
    numbers = loaded(bytes, dtype);
  }
  int64_t at(int64_t head, int64_t row) const {
    return turned ? (row * heads + head) * columns : (head * rows + row) * columns;
  }
  double get(int64_t head, int64_t row, int64_t column) const {
    return numbers[static_cast<size_t>(at(head, row) + column)];
  }
  ep_operand_desc operand(int32_t role, int32_t dtype) const {
    const int64_t all = heads * rows * columns;
    return strided(role, dtype, {1, heads, rows, columns},
                   turned ? std::vector<int64_t>{all, columns, heads * columns, 1}
                          : std::vector<int64_t>{all, rows * columns, columns, 1});
  }
};

class AttentionBlocks : public testing::TestWithParam<const char*> {
 protected:
  static void compare(OpenProvider& cpu, const Shape& s, int32_t dtype) {
    const std::string label =
        fmt::format("{} heads of {}, {} x {} x {}{}{}, dtype {}", s.heads, s.groups, s.queries, s.keys, s.width,
                    s.causal ? ", causal" : "", s.turned ? ", turned" : "", dtype);
    std::mt19937_64 generator(31);
    Rows query(s.heads, s.queries, s.width, s.turned, dtype, &generator);
    Rows key(s.groups, s.keys, s.width, false, dtype, &generator);
    Rows value(s.groups, s.keys, s.width, s.turned, dtype, &generator);
    Rows dst(s.heads, s.queries, s.width, s.turned, dtype, &generator);
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_attention, {dst.operand(EP_ROLE_DST, dtype), query.operand(EP_ROLE_SRC, dtype),
                                            key.operand(EP_ROLE_SRC_B, dtype), value.operand(EP_ROLE_SRC_C, dtype)});
    desc.attributes.attention.align = EP_ATTENTION_START;
    desc.attributes.attention.before = -1;
    desc.attributes.attention.after = s.causal ? 0 : -1;
    const double scale = 1 / std::sqrt(static_cast<double>(s.width));
    ep_scalar given{};
    given.dtype = EP_DTYPE_f64;
    given.value.f64 = scale;
    const LaunchResult run =
        run_once(cpu, desc, {dst.bytes.data(), query.bytes.data(), key.bytes.data(), value.bytes.data()}, {given});
    ASSERT_EQ(run.status, EP_STATUS_OK) << label << ": " << cpu.host.sentence();
    const std::vector<double> results = loaded(dst.bytes, dtype);
    const double tolerance = dtype == EP_DTYPE_f64 ? 1e-13 : dtype == EP_DTYPE_f32 ? 1e-5 : 0;
    const double rounding = dtype == EP_DTYPE_f16 ? 0x1p-10 : dtype == EP_DTYPE_bf16 ? 0x1p-7 : 0;
    for (int64_t head = 0; head < s.heads; ++head) {
      const int64_t group = head / (s.heads / s.groups);
      for (int64_t i = 0; i < s.queries; ++i) {
        const int64_t count = s.causal ? std::min(s.keys, i + 1) : s.keys;
        std::vector<double> weights(static_cast<size_t>(count));
        double total = 0;
        for (int64_t j = 0; j < count; ++j) {
          double score = 0;
          for (int64_t c = 0; c < s.width; ++c) score += query.get(head, i, c) * key.get(group, j, c);
          weights[static_cast<size_t>(j)] = std::exp(score * scale);
          total += weights[static_cast<size_t>(j)];
        }
        for (int64_t c = 0; c < s.width; ++c) {
          double wanted = 0;
          for (int64_t j = 0; j < count; ++j) wanted += weights[static_cast<size_t>(j)] * value.get(group, j, c);
          wanted /= total;
          ASSERT_NEAR(results[static_cast<size_t>(dst.at(head, i) + c)], wanted,
                      tolerance + rounding * (std::abs(wanted) + 1e-3))
              << label << " at head " << head << ", query " << i << ", column " << c;
        }
      }
    }
  }
};

TEST_P(AttentionBlocks, EqualsLoopsInDouble) {
  const std::unique_ptr<OpenProvider> cpu = open_on_target(GetParam());
  if (cpu == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  for (const int32_t dtype : {EP_DTYPE_f64, EP_DTYPE_f32, EP_DTYPE_f16, EP_DTYPE_bf16}) {
    for (const bool causal : {false, true}) {
      for (const bool turned : {false, true}) {
        compare(*cpu, {2, 2, 61, 150, 33, causal, turned}, dtype);
        compare(*cpu, {4, 2, 7, 131, 16, causal, turned}, dtype);
        compare(*cpu, {3, 1, 1, 200, 40, causal, turned}, dtype);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Target, AttentionBlocks, testing::Values("baseline", "avx2", "avx3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
