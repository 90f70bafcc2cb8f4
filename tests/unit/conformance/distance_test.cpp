// The distance of a result from the reference. The steps are counted here independently: by std::nextafter, and for
// narrow dtypes in the sorted list of all their values.
#include "tests/cases/distance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <string>

#include "primitives/dtype/convert.h"
#include "primitives/reference/reference.h"
#include "primitives/text/format.h"
#include "tests/cases/compare.h"

namespace tenon::cases {
namespace {

constexpr DType float_types[] = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8e4m3fn, DType::f8e5m2};

// All finite values of a dtype of at most 16 bits, each once, in order.
const std::vector<double>& values_of(DType dtype) {
  static std::map<DType, std::vector<double>> all;
  std::vector<double>& values = all[dtype];
  if (!values.empty()) return values;
  for (uint64_t bits = 0; bits < uint64_t{1} << dtype_info(dtype).bits; ++bits) {
    const double value = decode_float(dtype, bits);
    if (std::isfinite(value) && !(value == 0 && std::signbit(value))) values.push_back(value);
  }
  std::sort(values.begin(), values.end());
  return values;
}

// The value `steps` above `value` (below it if negative), or NaN if there is none.
double moved(DType dtype, double value, int64_t steps) {
  const double to = steps < 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  const int64_t count = std::abs(steps);
  if (dtype == DType::f64) {
    for (int64_t i = 0; i < count; ++i) value = std::nextafter(value, to);
  } else if (dtype == DType::f32) {
    auto narrow = static_cast<float>(value);
    for (int64_t i = 0; i < count; ++i) narrow = std::nextafterf(narrow, static_cast<float>(to));
    value = narrow;
  } else {
    const std::vector<double>& values = values_of(dtype);
    const int64_t at = std::lower_bound(values.begin(), values.end(), value) - values.begin() + steps;
    if (at < 0 || at >= static_cast<int64_t>(values.size())) return std::nan("");
    value = values[static_cast<size_t>(at)];
  }
  return std::isfinite(value) ? value : std::nan("");
}

// Values of every size of a dtype, of both signs, as bits of the dtype.
std::vector<uint64_t> wants_of(DType dtype) {
  std::vector<uint64_t> wants;
  for (double value : {1.0, 0.3, 2.0, 3.0, 1e-3, 100.0, 1669.7652271478146, -15.6890284, 1e-30, 1e30, 0x1p62, 5e-324,
                       2.2250738585072014e-308, 1e300}) {
    for (double sign : {1.0, -1.0}) {
      const uint64_t bits = encode_float(dtype, sign * value);
      if (std::isfinite(decode_float(dtype, bits))) wants.push_back(bits);
    }
  }
  return wants;
}

TEST(Distance, CountsTheStepsOfEveryFloatingType) {
  int counted = 0;
  for (DType dtype : float_types) {
    for (uint64_t want : wants_of(dtype)) {
      for (int64_t steps : {0, 1, 2, 5, 10, 33, 511, 1004, -1, -3, -34, -449, -1023}) {
        const double value = moved(dtype, decode_float(dtype, want), steps);
        if (std::isnan(value)) continue;
        ++counted;
        EXPECT_EQ(steps_between(dtype, encode_float(dtype, value), want), static_cast<uint64_t>(std::abs(steps)))
            << dtype_name(dtype) << " " << value_text(dtype, want) << " moved by " << steps;
      }
    }
  }
  EXPECT_GT(counted, 1000);
}

// The tolerance of one case of each scalar function and dtype, and of every other kind with a bound in steps.
std::map<std::string, Case> cases_with_bounds() {
  std::map<std::string, Case> found;
  for (const Case& test : all_cases()) {
    const auto dtype = static_cast<DType>(test.desc.operands[0].dtype);
    if (!is_floating(dtype) || test.tolerance.ulps == 0) continue;
    found.emplace(test.name.substr(0, test.name.rfind('/')), test);
  }
  return found;
}

TEST(Distance, AnErrorOfAsManyStepsAsAllowedPassesAndOneStepMoreFails) {
  int planted = 0;
  for (const auto& [name, test] : cases_with_bounds()) {
    const auto dtype = static_cast<DType>(test.desc.operands[0].dtype);
    const Tolerance steps_alone = {test.tolerance.ulps, 0, 0};
    const auto allowed = static_cast<int64_t>(test.tolerance.ulps);
    for (uint64_t want : wants_of(dtype)) {
      for (int64_t sign : {1, -1}) {
        const double last = moved(dtype, decode_float(dtype, want), sign * allowed);
        const double next = moved(dtype, decode_float(dtype, want), sign * (allowed + 1));
        if (std::isnan(last) || std::isnan(next)) continue;
        ++planted;
        EXPECT_TRUE(is_near(dtype, steps_alone, encode_float(dtype, last), want))
            << name << ": " << allowed << " steps from " << value_text(dtype, want);
        EXPECT_FALSE(is_near(dtype, steps_alone, encode_float(dtype, next), want))
            << name << ": " << allowed + 1 << " steps from " << value_text(dtype, want);
      }
    }
  }
  EXPECT_GT(planted, 5000);
  std::printf("%d errors were planted at a limit and one step beyond it\n", planted);
}

// Compares a whole launch: one element of the result is changed.
TEST(Distance, OnePlantedElementIsFoundInEveryFunctionAndFloatingType) {
  int planted = 0;
  for (const auto& [name, test] : cases_with_bounds()) {
    if (test.desc.kind != EP_PRIMITIVE_unary && test.desc.kind != EP_PRIMITIVE_binary) continue;
    const auto dtype = static_cast<DType>(test.desc.operands[0].dtype);
    Image start = make_image(test.desc, false);
    fill_inputs(test, test.desc, &start);
    Image want = start;
    std::vector<void*> addresses;
    for (uint32_t i = 0; i < test.desc.operand_count; ++i) addresses.push_back(want.address(i));
    const Status ran = reference::run(test.desc, addresses.data(), test.scalars.data(),
                                      static_cast<uint32_t>(test.scalars.size()), nullptr);
    ASSERT_TRUE(ran.ok()) << ran.message();
    const auto bytes = static_cast<size_t>(dtype_info(dtype).bits / 8);
    Case steps_alone = test;
    steps_alone.tolerance = {test.tolerance.ulps, 0, 0};
    steps_alone.saturation = {};
    for (size_t element = 0; element < 200; element += 13) {
      uint64_t bits = 0;
      std::memcpy(&bits, want.bytes.data() + want.offsets[0] + element * bytes, bytes);
      const double value = decode_float(dtype, bits);
      const auto allowed = static_cast<int64_t>(test.tolerance.ulps);
      for (int64_t steps : {allowed, allowed + 1, -allowed, -allowed - 1}) {
        const double planted_value = std::isfinite(value) ? moved(dtype, value, steps) : std::nan("");
        if (std::isnan(planted_value)) continue;
        ++planted;
        Image got = want;
        const uint64_t planted_bits = encode_float(dtype, planted_value);
        std::memcpy(got.bytes.data() + got.offsets[0] + element * bytes, &planted_bits, bytes);
        const Status found = compare_images(steps_alone, test.desc, start, {}, got, want);
        if (std::abs(steps) == allowed) {
          EXPECT_TRUE(found.ok()) << name << " " << found.message();
          continue;
        }
        const std::string sentence = fmt::format("{} ulp away (1 element differs; allowed: ", allowed + 1);
        EXPECT_NE(found.message().find(sentence), std::string::npos) << name << ": " << found.message();
        EXPECT_NE(found.message().find(value_text(dtype, planted_bits)), std::string::npos) << found.message();
        EXPECT_NE(found.message().find(" of dst of src "), std::string::npos) << found.message();
      }
    }
  }
  EXPECT_GT(planted, 1000);
}

TEST(Distance, AnAllowanceOfEpsilonsOrTinyEndsWhereItSays) {
  const auto f64 = [](double value) { return std::bit_cast<uint64_t>(value); };
  constexpr double epsilon = 0x1p-52, least = 0x1p-1022;
  EXPECT_TRUE(is_near(DType::f64, {0, 32, 0}, f64(1 + 32 * epsilon), f64(1)));
  EXPECT_FALSE(is_near(DType::f64, {0, 32, 0}, f64(1 + 33 * epsilon), f64(1)));
  EXPECT_TRUE(is_near(DType::f64, {0, 0, 1}, f64(0), f64(least)));
  EXPECT_FALSE(is_near(DType::f64, {0, 0, 1}, f64(0), f64(least + 0x1p-1074)));
  EXPECT_TRUE(is_near(DType::f32, {0, 4, 0}, std::bit_cast<uint32_t>(0x1p-21F), 0));
  EXPECT_FALSE(is_near(DType::f32, {0, 4, 0}, std::bit_cast<uint32_t>(std::nextafterf(0x1p-21F, 1)), 0));
}

TEST(Distance, NaNAndInfinityMatchThemselvesAlone) {
  const auto f64 = [](double value) { return std::bit_cast<uint64_t>(value); };
  const double inf = std::numeric_limits<double>::infinity(), greatest = std::numeric_limits<double>::max();
  EXPECT_TRUE(is_near(DType::f64, {}, f64(std::nan("")), f64(-std::nan("1"))));
  EXPECT_FALSE(is_near(DType::f64, {1e9, 1e9, 1e9}, f64(std::nan("")), f64(1)));
  EXPECT_FALSE(is_near(DType::f64, {1e9, 1e9, 1e9}, f64(inf), f64(-inf)));
  EXPECT_FALSE(is_near(DType::f64, {0, 0, 0}, f64(inf), f64(greatest)));
  EXPECT_TRUE(is_near(DType::f64, {}, f64(-0.0), f64(0.0)));
}

// tanh and gelu_tanh agree: gelu_tanh multiplies by 1 + tanh, which must be 0 for a large negative argument.
TEST(Distance, ASaturatedFunctionIsExactThereAndNeverBeyondItsEnd) {
  const Saturation tanh = {1, 20};
  const Tolerance steps = {5, 0, 0};
  const double inf = std::numeric_limits<double>::infinity();
  for (DType dtype : float_types) {
    const auto bits = [&](double value) { return encode_float(dtype, value); };
    const uint64_t end = bits(-1), before = end - 1, beyond = end + 1;
    EXPECT_TRUE(is_near(dtype, steps, beyond, end)) << "the steps alone allow it";
    for (double x : {-inf, -1e9, -100.0, -20.0}) {
      if (std::isnan(decode_float(dtype, bits(x)))) continue;  // f8e4m3fn has no infinity
      EXPECT_TRUE(is_within(dtype, tanh, end, end, bits(x))) << dtype_name(dtype);
      EXPECT_FALSE(is_within(dtype, tanh, beyond, end, bits(x))) << dtype_name(dtype);
      EXPECT_FALSE(is_within(dtype, tanh, before, end, bits(x))) << dtype_name(dtype);
    }
    EXPECT_TRUE(is_within(dtype, tanh, before, end, bits(-9)));
    EXPECT_FALSE(is_within(dtype, tanh, beyond, end, bits(-9)));
    EXPECT_TRUE(is_within(dtype, {}, beyond, end, bits(-inf))) << "a function that does not saturate";
  }
}

TEST(Distance, AValueIsPrintedWithAllItsDigits) {
  EXPECT_EQ(value_text(DType::f64, std::bit_cast<uint64_t>(1669.7652271478146)), "1669.7652271478146");
  EXPECT_EQ(value_text(DType::f64, std::bit_cast<uint64_t>(std::nextafter(1.0, 2.0))), "1.0000000000000002");
  EXPECT_EQ(value_text(DType::f32, std::bit_cast<uint32_t>(0.1F)), "0.100000001");
  EXPECT_EQ(value_text(DType::i32, static_cast<uint64_t>(int64_t{-7})), "-7");
}

}  // namespace
}  // namespace tenon::cases
