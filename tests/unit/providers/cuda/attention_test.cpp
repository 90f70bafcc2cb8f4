// Attention against a softmax over all scores in double: tiles of every kind, splits of the keys, and masked-out
// positions. On the fake driver, and larger on a GPU if there is one.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ep_api/ep_names.h"
#include "primitives/text/format.h"
#include "providers/cuda/kernels/element.h"
#include "tests/unit/providers/cuda/fixture.h"

namespace tenon::provider::cuda {
namespace {

struct Problem {
  int64_t batch, heads, groups, queries, keys, width, columns;
  int32_t align = EP_ATTENTION_START;
  int64_t before = -1;
  int64_t after = -1;
  std::vector<int32_t> lengths = {};
};

struct Result {
  std::vector<double> values;
  std::vector<double> log_sums;
};

// The numbers of `dtype` nearest to `values`.
std::vector<float> rounded(std::vector<float> values, int32_t dtype) {
  for (float& value : values) {
    if (dtype == EP_DTYPE_f16) value = half_to_float(half_from_float(value));
    if (dtype == EP_DTYPE_bf16) value = bfloat_to_float(bfloat_from_float(value));
  }
  return values;
}

Result expected(const Problem& p, const std::vector<float>& query, const std::vector<float>& key,
                const std::vector<float>& value, double scale) {
  Result result;
  const int64_t rows = p.batch * p.heads * p.queries;
  const double none = -std::numeric_limits<double>::infinity();
  std::vector<double> scores(static_cast<size_t>(p.keys));
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t batch = row / p.queries / p.heads;
    const int64_t group = batch * p.groups + row / p.queries % p.heads / (p.heads / p.groups);
    const int64_t length = p.lengths.empty() ? p.keys : p.lengths[static_cast<size_t>(batch)];
    const int64_t position = row % p.queries + (p.align == EP_ATTENTION_END ? length - p.queries : 0);
    double most = none;
    for (int64_t j = 0; j < p.keys; ++j) {
      const bool takes_part =
          j < length && (p.before < 0 || j >= position - p.before) && (p.after < 0 || j <= position + p.after);
      double score = takes_part ? 0 : none;
      for (int64_t i = 0; takes_part && i < p.width; ++i) {
        score += static_cast<double>(query[static_cast<size_t>(row * p.width + i)]) *
                 static_cast<double>(key[static_cast<size_t>((group * p.keys + j) * p.width + i)]) * scale;
      }
      scores[static_cast<size_t>(j)] = score;
      most = std::max(most, score);
    }
    double total = 0;
    std::vector<double> sums(static_cast<size_t>(p.columns));
    for (int64_t j = 0; j < p.keys; ++j) {
      const double weight =
          scores[static_cast<size_t>(j)] == none ? 0 : std::exp(scores[static_cast<size_t>(j)] - most);
      total += weight;
      for (int64_t c = 0; weight != 0 && c < p.columns; ++c) {
        sums[static_cast<size_t>(c)] +=
            weight * static_cast<double>(value[static_cast<size_t>((group * p.keys + j) * p.columns + c)]);
      }
    }
    for (const double sum : sums) result.values.push_back(total == 0 ? 0 : sum / total);
    result.log_sums.push_back(total == 0 ? none : most + std::log(total));
  }
  return result;
}

class CudaKernelsOfAttention : public FakeCuda {
 protected:
  ep_memory* stored(const std::vector<float>& values, int32_t dtype) {
    if (dtype == EP_DTYPE_f32) return with(values);
    std::vector<uint16_t> bits;
    for (const float value : values)
      bits.push_back(dtype == EP_DTYPE_f16 ? half_from_float(value) : bfloat_from_float(value));
    return with(bits);
  }
  std::vector<float> fetched(ep_memory* memory, size_t count, int32_t dtype) {
    if (dtype == EP_DTYPE_f32) return get<float>(memory, count);
    std::vector<float> values;
    for (const uint16_t bits : get<uint16_t>(memory, count))
      values.push_back(dtype == EP_DTYPE_f16 ? half_to_float(bits) : bfloat_to_float(bits));
    return values;
  }
  static ep_primitive_desc described(const Problem& p, int32_t dtype) {
    std::vector<ep_operand_desc> operands = {dense(EP_ROLE_DST, dtype, {p.batch, p.heads, p.queries, p.columns}),
                                             dense(EP_ROLE_LOG_SUM, EP_DTYPE_f32, {p.batch, p.heads, p.queries, 1}),
                                             dense(EP_ROLE_SRC, dtype, {p.batch, p.heads, p.queries, p.width}),
                                             dense(EP_ROLE_SRC_B, dtype, {p.batch, p.groups, p.keys, p.width}),
                                             dense(EP_ROLE_SRC_C, dtype, {p.batch, p.groups, p.keys, p.columns})};
    if (!p.lengths.empty()) operands.push_back(dense(EP_ROLE_LENGTHS, EP_DTYPE_i32, {p.batch}));
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_attention, operands);
    desc.attributes.attention = {p.align, 0, p.before, p.after};
    return desc;
  }

  // Keys and values beyond the lengths are NaN in memory.
  void check(const Problem& p, int32_t dtype) {
    SCOPED_TRACE(fmt::format("{}, {} queries, {} keys, rows of {} and {}", ep_dtype_name(dtype), p.queries, p.keys,
                             p.width, p.columns));
    const double scale = 1 / std::sqrt(static_cast<double>(p.width));
    const auto random = [&](int64_t count, uint32_t seed) {
      return rounded(random_floats(static_cast<size_t>(count), seed), dtype);
    };
    const std::vector<float> query = random(p.batch * p.heads * p.queries * p.width, 1);
    std::vector<float> key = random(p.batch * p.groups * p.keys * p.width, 2);
    std::vector<float> value = random(p.batch * p.groups * p.keys * p.columns, 3);
    const Result want = expected(p, query, key, value, scale);
    for (int64_t batch = 0; batch < static_cast<int64_t>(p.lengths.size()); ++batch) {
      for (int64_t row = 0; row < p.groups * p.keys; ++row) {
        if (row % p.keys < p.lengths[static_cast<size_t>(batch)]) continue;
        const int64_t at = batch * p.groups * p.keys + row;
        std::fill_n(key.begin() + at * p.width, p.width, std::numeric_limits<float>::quiet_NaN());
        std::fill_n(value.begin() + at * p.columns, p.columns, std::numeric_limits<float>::quiet_NaN());
      }
    }
    ep_memory* const dst = stored(std::vector<float>(want.values.size(), 77), dtype);
    ep_memory* const log_sum = with(std::vector<float>(want.log_sums.size(), 77));
    std::vector<ep_memory*> operands = {dst, log_sum, stored(query, dtype), stored(key, dtype), stored(value, dtype)};
    if (!p.lengths.empty()) operands.push_back(with(p.lengths));
    const std::vector<ep_scalar> scalars = {{dtype, 0, {.f64 = scale}}, {dtype, 0, {.f64 = 0}}};
    ASSERT_EQ(launch(described(p, dtype), operands, scalars), EP_STATUS_OK) << cuda().host.sentence();
    const std::vector<float> got = fetched(dst, want.values.size(), dtype);
    const std::vector<float> sums = get<float>(log_sum, want.log_sums.size());
    const double step = dtype == EP_DTYPE_f32 ? 1e-5 : dtype == EP_DTYPE_f16 ? 0x1p-10 : 0x1p-7;
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], want.values[i], step * std::fabs(want.values[i]) + 1e-5) << i;
    for (size_t i = 0; i < sums.size(); ++i) {
      if (std::isinf(want.log_sums[i])) {
        ASSERT_EQ(sums[i], static_cast<float>(want.log_sums[i])) << i;
      } else {
        ASSERT_NEAR(sums[i], want.log_sums[i], 1e-5 * (1 + std::fabs(want.log_sums[i]))) << i;
      }
    }
    ASSERT_EQ(launch(described(p, dtype), operands, scalars), EP_STATUS_OK);
    ASSERT_EQ(fetched(dst, want.values.size(), dtype), got) << "a repeated launch gives other bits";
  }
  void check_all_types(const Problem& p) {
    for (const int32_t dtype : {EP_DTYPE_f32, EP_DTYPE_f16, EP_DTYPE_bf16}) check(p, dtype);
  }
};

TEST_F(CudaKernelsOfAttention, TilesOfEveryRowAndMask) {
  const int64_t more = on_fake() ? 1 : 5;
  for (const int64_t width : {8, 64, 72, 128, 256}) {
    const int64_t rows = width == 64 ? 130 * more : 20 * more;
    check_all_types({1, 2, 2, rows, 67 * more, width, width});
    check_all_types({1, 2, 1, rows, 67 * more, width, width - 5, EP_ATTENTION_END, -1, 0});
  }
  check_all_types({1, 1, 1, 140 * more, 150 * more, 16, 16, EP_ATTENTION_START, 33, 7});
}

// One query and a few queries, for which the keys are split.
TEST_F(CudaKernelsOfAttention, SplitKeysAreCombined) {
  const int64_t keys = on_fake() ? 700 : 5003;
  check_all_types({1, 4, 1, 1, keys, 64, 64});
  check_all_types({1, 3, 1, 5, keys, 128, 96, EP_ATTENTION_END, -1, 0});
  check_all_types({1, 1, 1, 3, keys, 40, 40, EP_ATTENTION_END, 300, 0});
  check_all_types({1, 1, 1, 2, keys, 64, 64, EP_ATTENTION_START, -1, -1, {130}});
}

TEST_F(CudaKernelsOfAttention, KeysBeyondALengthAreNotRead) {
  check_all_types({4, 4, 2, 9, 70, 64, 64, EP_ATTENTION_START, -1, -1, {0, 1, 64, 70}});
  check_all_types({3, 2, 1, 9, 70, 72, 40, EP_ATTENTION_END, 10, 0, {3, 65, 69}});
}

// Positions before the first key, and rows longer than a tile.
TEST_F(CudaKernelsOfAttention, AQueryWithoutAKeyGivesZero) {
  check_all_types({1, 2, 1, 80, 3, 24, 24, EP_ATTENTION_END, -1, 0});
  check_all_types({1, 1, 1, 200, 3, 72, 72, EP_ATTENTION_END, -1, 0});
  check_all_types({1, 2, 1, 9, 3, 300, 24, EP_ATTENTION_END, 1, 0});
}

}  // namespace
}  // namespace tenon::provider::cuda
