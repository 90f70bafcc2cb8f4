// Every scalar function of scalar_ops.def on every type that it supports, on every dispatch target, compared with the
// double-precision reference: contiguous, strided and broadcast operands, scalars, dims given at launch.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "primitives/dtype/dtype.h"
#include "primitives/reference/element.h"
#include "primitives/reference/reference.h"
#include "primitives/text/format.h"
#include "sdk/provider/descriptor.h"
#include "sdk/provider/scalar_rows.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

constexpr int32_t byte_dtypes[] = {EP_DTYPE_bool, EP_DTYPE_i8,  EP_DTYPE_i16, EP_DTYPE_i32,      EP_DTYPE_i64,
                                   EP_DTYPE_u8,   EP_DTYPE_u16, EP_DTYPE_u32, EP_DTYPE_u64,      EP_DTYPE_f16,
                                   EP_DTYPE_bf16, EP_DTYPE_f32, EP_DTYPE_f64, EP_DTYPE_f8e4m3fn, EP_DTYPE_f8e5m2};

// Half a unit in the last place, relative.
double epsilon(int32_t dtype) {
  switch (dtype) {
    case EP_DTYPE_f64: return 1e-15;
    case EP_DTYPE_f32: return 6e-8;
    case EP_DTYPE_f16: return 5e-4;
    case EP_DTYPE_bf16: return 4e-3;
    case EP_DTYPE_f8e4m3fn: return 0.0625;
    case EP_DTYPE_f8e5m2: return 0.125;
    default: return 0;
  }
}

class Values {
 public:
  explicit Values(uint32_t seed) : generator_(seed) {}

  std::vector<unsigned char> of(const ep_operand_desc& operand, bool positive_integers) {
    const int64_t count = extent(operand);
    std::vector<unsigned char> bytes(static_cast<size_t>(count * dtype_size(operand.dtype)));
    for (int64_t i = 0; i < count; ++i) put(operand.dtype, bytes.data(), i, positive_integers);
    return bytes;
  }

 private:
  void put(int32_t dtype, void* base, int64_t i, bool positive_integers) {
    const auto type = static_cast<DType>(dtype);
    if (is_floating(dtype)) {
      std::uniform_real_distribution<double> distribution(-4.0, 4.0);
      const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1.0, -1.0, 100.0, -100.0, 1e-40};
      const bool take = generator_() % 8 == 0;
      return reference::store(type, base, i, take ? special[generator_() % 10] : distribution(generator_));
    }
    if (dtype == EP_DTYPE_bool) return reference::store<uint64_t>(type, base, i, generator_() % 2);
    const auto bits = static_cast<int64_t>((static_cast<uint64_t>(generator_()) << 32) | generator_());
    const int64_t value = generator_() % 3 == 0 ? bits : bits % 40;
    reference::store<int64_t>(type, base, i, positive_integers ? std::abs(value % 100) + 1 : value);
  }

  std::mt19937 generator_;
};

// The results of provider and reference may differ by `ulps` of the type. NaN equals NaN.
void expect_close(const ep_operand_desc& operand, const std::vector<unsigned char>& actual,
                  const std::vector<unsigned char>& expected, double ulps, const std::string& what) {
  const auto type = static_cast<DType>(operand.dtype);
  for (int64_t i = 0; i < extent(operand); ++i) {
    if (is_floating(operand.dtype)) {
      const double a = reference::load<double>(type, actual.data(), i);
      const double e = reference::load<double>(type, expected.data(), i);
      if ((std::isnan(a) && std::isnan(e)) || a == e) continue;
      ASSERT_LE(std::fabs(a - e), ulps * 2 * epsilon(operand.dtype) * std::fabs(e) + 1e-6 * (ulps > 1))
          << what << ", element " << i;
    } else {
      ASSERT_EQ(reference::load<int64_t>(type, actual.data(), i), reference::load<int64_t>(type, expected.data(), i))
          << what << ", element " << i;
    }
  }
}

struct Case {
  ep_primitive_desc desc;
  std::string what;
  double ulps = 1;
  bool positive_integers = false;
  double first_scalar = 0.5;  // for a floating type; each further scalar is one more
};

void check(OpenProvider& provider, const Case& test, bool dynamic, Values& values) {
  std::vector<std::vector<unsigned char>> bytes;
  std::vector<void*> operands;
  operands.reserve(test.desc.operand_count);
  for (uint32_t i = 0; i < test.desc.operand_count; ++i) {
    const bool scalar = is_scalar(test.desc.operands[i]);
    bytes.push_back(scalar ? std::vector<unsigned char>() : values.of(test.desc.operands[i], test.positive_integers));
  }
  std::vector<ep_scalar> scalars;
  for (uint32_t slot = 0; slot < 3; ++slot) {
    const uint32_t on = std::min(slot + 1, test.desc.operand_count - 1);
    ep_scalar scalar{};
    scalar.dtype = test.desc.operands[on].dtype;
    if (is_floating(scalar.dtype))
      scalar.value.f64 = test.first_scalar + slot;
    else
      scalar.value.u64 = scalar.dtype == EP_DTYPE_bool ? 1 : 3 + slot;
    scalars.push_back(scalar);
  }
  std::vector<unsigned char> poisoned(bytes[0].size(), 0xa5);
  std::vector<unsigned char> expected = poisoned;
  for (auto& operand : bytes) operands.push_back(operand.empty() ? nullptr : operand.data());
  operands[0] = expected.data();
  ep_fault expected_fault{};
  const Status reference = reference::run(test.desc, operands.data(), scalars.data(), 3, &expected_fault);
  ASSERT_TRUE(reference.ok() || reference.code() == Code::fault) << test.what << reference.message();
  operands[0] = poisoned.data();
  const LaunchResult result = run_once(provider, test.desc, operands, scalars, dynamic);
  ASSERT_EQ(result.status, static_cast<ep_status>(reference.code())) << test.what << ": " << provider.host.sentence();
  if (!reference.ok()) {
    EXPECT_EQ(result.fault.operand, expected_fault.operand) << test.what;
    EXPECT_EQ(result.fault.tag, 77u);
  }
  expect_close(test.desc.operands[0], poisoned, expected, test.ulps, test.what);
}

// One scalar function over the layouts that a host may use.
std::vector<ep_primitive_desc> layouts(int32_t kind, int32_t dst_dtype, const std::vector<int32_t>& src_dtypes) {
  std::vector<ep_primitive_desc> all;
  const int32_t roles[] = {EP_ROLE_SRC, EP_ROLE_SRC_B, EP_ROLE_SRC_C};
  const auto add = [&](auto&& dst, auto&& src) {
    std::vector<ep_operand_desc> operands{dst()};
    for (size_t i = 0; i < src_dtypes.size(); ++i) operands.push_back(src(roles[i], src_dtypes[i], i));
    all.push_back(descriptor(kind, operands));
  };
  for (int64_t n : {1, 4, 61, 5000}) {
    add([&] { return dense(EP_ROLE_DST, dst_dtype, {n}); },
        [&](int32_t role, int32_t dtype, size_t) { return dense(role, dtype, {n}); });
  }
  add(
      [&] {
        return strided(EP_ROLE_DST, dst_dtype, {3, 1, 35}, {80, 80, 2});
      },
      [&](int32_t role, int32_t dtype, size_t i) {
        return i == 0 ? strided(role, dtype, {3, 1, 35}, {1, 7, 3}) : strided(role, dtype, {3, 1, 35}, {0, 0, 1});
      });
  add(
      [&] {
        return dense(EP_ROLE_DST, dst_dtype, {3, 70});
      },
      [&](int32_t role, int32_t dtype, size_t i) {
        return i == 0 ? dense(role, dtype, {3, 70}) : strided(role, dtype, {3, 70}, {1, 0});
      });
  // Short rows: sources repeated along the last axis, all of them or one; the same row everywhere; rows with gaps in
  // sources and result; axes in another order; gaps of different lengths, with a row repeated in the middle.
  add(
      [&] {
        return dense(EP_ROLE_DST, dst_dtype, {1400, 3});
      },
      [&](int32_t role, int32_t dtype, size_t) {
        return strided(role, dtype, {1400, 3}, {1, 0});
      });
  add(
      [&] {
        return dense(EP_ROLE_DST, dst_dtype, {90, 17});
      },
      [&](int32_t role, int32_t dtype, size_t i) {
        return i == 0 ? strided(role, dtype, {90, 17}, {2, 0}) : strided(role, dtype, {90, 17}, {0, 1});
      });
  add(
      [&] {
        return dense(EP_ROLE_DST, dst_dtype, {150, 9});
      },
      [&](int32_t role, int32_t dtype, size_t) {
        return strided(role, dtype, {150, 9}, {0, 1});
      });
  for (int64_t n : {3, 17}) {
    add(
        [&] {
          return strided(EP_ROLE_DST, dst_dtype, {120, n}, {n + 2, 1});
        },
        [&](int32_t role, int32_t dtype, size_t) {
          return strided(role, dtype, {120, n}, {n + 1, 1});
        });
  }
  // Rows whose gaps do not fit a block of 64-bit elements.
  add(
      [&] {
        return strided(EP_ROLE_DST, dst_dtype, {5, 400}, {801, 2});
      },
      [&](int32_t role, int32_t dtype, size_t) {
        return strided(role, dtype, {5, 400}, {600, 1});
      });
  add(
      [&] {
        return dense(EP_ROLE_DST, dst_dtype, {5, 4, 30, 2});
      },
      [&](int32_t role, int32_t dtype, size_t i) {
        return i == 0 ? strided(role, dtype, {5, 4, 30, 2}, {1, 5, 40, 20}) : dense(role, dtype, {5, 4, 30, 2});
      });
  add(
      [&] {
        return dense(EP_ROLE_DST, dst_dtype, {7, 20, 8});
      },
      [&](int32_t role, int32_t dtype, size_t i) {
        return strided(role, dtype, {7, 20, 8}, {i == 0 ? 9 : 11, 0, 1});
      });
  if (src_dtypes.size() > 1) {
    add(
        [&] {
          return dense(EP_ROLE_DST, dst_dtype, {130, 9});
        },
        [&](int32_t role, int32_t dtype, size_t i) {
          return i == 1 ? scalar_operand(role, dtype) : strided(role, dtype, {130, 9}, {12, 1});
        });
    add([&] { return dense(EP_ROLE_DST, dst_dtype, {50}); },
        [&](int32_t role, int32_t dtype, size_t i) {
          return i == 1 ? scalar_operand(role, dtype) : dense(role, dtype, {50});
        });
    add([&] { return dense(EP_ROLE_DST, dst_dtype, {50}); },
        [&](int32_t role, int32_t dtype, size_t i) {
          return i == 0 ? scalar_operand(role, dtype) : dense(role, dtype, {50});
        });
  }
  // Two scalars: in a row that is too short for a block, in a longer one, and with gaps between the elements.
  if (src_dtypes.size() > 2) {
    for (int64_t n : {50, 5003}) {
      add([&] { return dense(EP_ROLE_DST, dst_dtype, {n}); },
          [&](int32_t role, int32_t dtype, size_t i) {
            return i == 0 ? dense(role, dtype, {n}) : scalar_operand(role, dtype);
          });
    }
    add(
        [&] {
          return dense(EP_ROLE_DST, dst_dtype, {3, 350});
        },
        [&](int32_t role, int32_t dtype, size_t i) {
          return i == 0 ? strided(role, dtype, {3, 350}, {1, 3}) : scalar_operand(role, dtype);
        });
  }
  return all;
}

class Rows : public testing::TestWithParam<const char*> {
 protected:
  static std::unique_ptr<OpenProvider> open() { return open_on_target(GetParam()); }
};

double bound_of(const std::string& name) {
  const bool is_pow = name == "pow";
  return is_pow ? 20 : 16;
}

TEST_P(Rows, UnaryEqualTheReference) {
  auto provider = open();
  if (provider == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  Values values(1);
  for (int32_t op = 1; scalar::unary_facts(op).known; ++op) {
    const scalar::RowFacts facts = scalar::unary_facts(op);
    for (int32_t dtype : byte_dtypes) {
      if (!scalar::defined_on(facts.domain, dtype)) continue;
      for (ep_primitive_desc desc : layouts(EP_PRIMITIVE_unary, facts.bool_result ? EP_DTYPE_bool : dtype, {dtype})) {
        desc.attributes.unary.op = op;
        const std::string what = fmt::format("{} {}", unary_name(op), dtype_name(dtype));
        check(*provider, {desc, what, bound_of(unary_name(op))}, desc.operands[0].rank % 2 == 0, values);
        if (HasFatalFailure()) break;
      }
    }
  }
}

TEST_P(Rows, BinaryEqualTheReference) {
  auto provider = open();
  if (provider == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  Values values(2);
  for (int32_t op = 1; scalar::binary_facts(op).known; ++op) {
    const scalar::RowFacts facts = scalar::binary_facts(op);
    for (int32_t dtype : byte_dtypes) {
      if (!scalar::defined_on(facts.domain, dtype)) continue;
      for (bool positive : {true, false}) {
        for (ep_primitive_desc desc :
             layouts(EP_PRIMITIVE_binary, facts.bool_result ? EP_DTYPE_bool : dtype, {dtype, dtype})) {
          desc.attributes.binary.op = op;
          const std::string what = fmt::format("{} {}", binary_name(op), dtype_name(dtype));
          check(*provider, {desc, what, bound_of(binary_name(op)), positive}, desc.operands[0].rank % 2 == 0, values);
          if (HasFatalFailure()) break;
        }
      }
    }
  }
}

// Powers that need few operations, of few elements and of many, contiguous and repeated.
TEST_P(Rows, SmallPowersEqualTheReference) {
  auto provider = open();
  if (provider == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  Values values(5);
  for (int32_t dtype : {EP_DTYPE_f32, EP_DTYPE_f64, EP_DTYPE_f16, EP_DTYPE_bf16}) {
    for (double exponent : {3.0, -1.0, -2.0, 1.0, 0.0}) {
      for (int64_t n : {1, 7, 300, 2001}) {
        for (int64_t step : {0, 1}) {
          ep_primitive_desc desc = descriptor(
              EP_PRIMITIVE_binary, {dense(EP_ROLE_DST, dtype, {n, 3}), strided(EP_ROLE_SRC, dtype, {n, 3}, {3, step}),
                                    scalar_operand(EP_ROLE_SRC_B, dtype)});
          desc.attributes.binary.op = EP_BINARY_pow;
          const std::string what = fmt::format("{} to the power {}", dtype_name(dtype), exponent);
          check(*provider, {desc, what, 2, false, exponent - 1}, false, values);  // the second scalar is the exponent
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(Rows, TernaryEqualTheReference) {
  auto provider = open();
  if (provider == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  Values values(3);
  for (int32_t op = 1; scalar::ternary_facts(op).known; ++op) {
    const scalar::RowFacts facts = scalar::ternary_facts(op);
    const bool condition = facts.domain == scalar::Domain::COND;
    for (int32_t dtype : byte_dtypes) {
      if (!scalar::defined_on(facts.domain, dtype)) continue;
      for (ep_primitive_desc desc :
           layouts(EP_PRIMITIVE_ternary, dtype, {condition ? EP_DTYPE_bool : dtype, dtype, dtype})) {
        desc.attributes.ternary.op = op;
        check(*provider, {desc, fmt::format("ternary {} {}", op, dtype_name(dtype)), 16},
              desc.operands[0].rank % 2 == 0, values);
        if (HasFatalFailure()) break;
      }
    }
  }
}

TEST_P(Rows, CopyCastsAsTheReference) {
  auto provider = open();
  if (provider == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
  Values values(4);
  for (int32_t from : byte_dtypes) {
    for (int32_t to : byte_dtypes) {
      for (const ep_primitive_desc& desc : layouts(EP_PRIMITIVE_copy, to, {from})) {
        check(*provider, {desc, fmt::format("copy {} to {}", dtype_name(from), dtype_name(to)), 0},
              desc.operands[0].rank % 2 == 0, values);
        if (HasFatalFailure()) break;
      }
    }
    check(
        *provider,
        {descriptor(EP_PRIMITIVE_fill, {dense(EP_ROLE_DST, from, {3, 5})}), std::string("fill ") + dtype_name(from), 0},
        false, values);
  }
}

INSTANTIATE_TEST_SUITE_P(Target, Rows, testing::Values("baseline", "avx2", "avx3"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
