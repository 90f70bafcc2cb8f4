// The bounds of the tiers of accuracy. An error at the end of a bound passes, and an error one step beyond it fails. A
// device that flushes denormals passes only if it says so. The numbers of accuracy.def are repeated here.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "primitives/dtype/convert.h"
#include "primitives/reference/reference.h"
#include "primitives/text/format.h"
#include "tests/cases/compare.h"
#include "tests/cases/distance.h"
#include "tests/cases/element.h"

namespace tenon::cases {
namespace {

Accuracy stating(Tier tier, bool flushes = false) {
  Accuracy accuracy;
  if (tier == Tier::portable) accuracy.portable = floating_dtypes();
  if (tier == Tier::relaxed) accuracy.relaxed = floating_dtypes();
  if (flushes) accuracy.flushed = floating_dtypes();
  return accuracy;
}

// A case with its inputs and the reference's results.
struct Ran {
  Case test;
  Image start, want;

  explicit Ran(const Case& from) : test(from) {
    start = make_image(test.desc, false);
    fill_inputs(test, test.desc, &start);
    want = run(start);
  }
  Image run(Image image) const {
    std::vector<void*> addresses;
    for (uint32_t i = 0; i < test.desc.operand_count; ++i) addresses.push_back(image.address(i));
    const Status ran = reference::run(test.desc, addresses.data(), test.scalars.data(),
                                      static_cast<uint32_t>(test.scalars.size()), nullptr);
    EXPECT_TRUE(ran.ok()) << ran.message();
    return image;
  }
  DType dtype() const { return type_of(test.desc.operands[0]); }
  uint64_t bits(const Image& image, int64_t element, uint32_t operand = 0) const {
    return raw_bits(type_of(test.desc.operands[operand]), image.bytes.data() + image.offsets[operand], element);
  }
  // Compares a result in which one element differs from the reference.
  Status with(int64_t element, uint64_t planted, const Accuracy& accuracy) const {
    Image got = want;
    put_bits(dtype(), got.address(0), element, planted);
    return compare_images(test, test.desc, start, accuracy, got, want);
  }
};

std::map<std::string, Case> cases_by_name() {
  std::map<std::string, Case> all;
  for (const Case& one : all_cases()) all.emplace(one.name, one);
  return all;
}

const Case& case_named(const std::string& name) {
  static const auto* all = new std::map<std::string, Case>(cases_by_name());
  return all->at(name);
}

// The last value of `dtype` away from 0 whose distance from `bits` is at most `distance`.
uint64_t last_within(DType dtype, uint64_t bits, double distance) {
  const double from = decode_float(dtype, bits);
  uint64_t last = bits;
  for (uint64_t step = uint64_t{1} << 50; step > 0; step /= 2) {
    const double to =
        (last & ~sign_bit(dtype)) + step < (sign_bit(dtype) - 1) ? decode_float(dtype, last + step) : std::nan("");
    if (std::isfinite(to) && std::fabs(to - from) <= distance) last += step;
  }
  return last;
}

double unit_of(DType dtype, uint64_t bits) {
  const uint64_t magnitude = bits & ~sign_bit(dtype);
  return decode_float(dtype, magnitude + 1) - decode_float(dtype, magnitude);
}

struct Row {
  const char* name;
  double ulps, per_x, epsilons;
};

// f32. Functions whose bound on tier portable is not inherited from a formula.
constexpr Row portable_rows[] = {{"sqrt", 4.5, 0, 0}, {"exp", 4, 2, 0},          {"expm1", 4, 0, 0},
                                 {"log", 4, 0, 4},    {"log1p", 4, 0, 0},        {"log2", 4, 0, 4},
                                 {"sin", 4, 0, 4096}, {"cos", 4, 0, 4096},       {"atan", 4096, 0, 0},
                                 {"erf", 16, 0, 0},   {"reciprocal", 2.5, 0, 0}, {"square", 1, 0, 0}};
constexpr Row relaxed_rows[] = {{"sqrt", 8192, 0, 0},   {"exp", 8192, 0, 0},        {"expm1", 8192, 0, 0},
                                {"log", 8192, 0, 4},    {"log1p", 8192, 0, 0},      {"log2", 8192, 0, 4},
                                {"sin", 8192, 0, 8192}, {"cos", 8192, 0, 8192},     {"atan", 8192, 0, 0},
                                {"erf", 8192, 0, 0},    {"reciprocal", 8192, 0, 0}, {"square", 1, 0, 0}};

// Plants errors at the limit of a row and one step beyond it. Returns their number.
int plant(const Row& row, Tier tier) {
  const Ran ran(case_named(fmt::format("unary/{}/f32/vector", row.name)));
  const bool periodic = std::strcmp(row.name, "sin") == 0 || std::strcmp(row.name, "cos") == 0;
  int planted = 0;
  for (int64_t element = 0; element < 400; element += 7) {
    const uint64_t want = ran.bits(ran.want, element);
    const double x = decode_float(DType::f32, ran.bits(ran.start, element, 1));
    if (!std::isfinite(decode_float(DType::f32, want)) || (periodic && std::fabs(x) > 3.14)) continue;
    const double unit = unit_of(DType::f32, want);
    const double error = std::max((row.ulps + row.per_x * std::fabs(x)) * unit, row.epsilons * 0x1p-23) + unit;
    // Tier full also allows 5 steps, and for exp and expm1 the least normal number.
    uint64_t last = last_within(DType::f32, want, std::max(error, 0x1p-126));
    if (last + 1 < want + 6 && row.ulps >= 4) last = want + 5;
    planted += 2;
    EXPECT_TRUE(ran.with(element, last, stating(tier)).ok()) << row.name << " of " << x;
    EXPECT_FALSE(ran.with(element, last + 1, stating(tier)).ok()) << row.name << " of " << x;
  }
  return planted;
}

TEST(Tiers, AnErrorAtTheBoundOfARowPassesAndOneStepMoreFails) {
  int planted = 0;
  for (const Row& row : portable_rows) planted += plant(row, Tier::portable);
  for (const Row& row : relaxed_rows) planted += plant(row, Tier::relaxed);
  std::printf("%d errors were planted at a row's bound and one step beyond it\n", planted);
  EXPECT_GT(planted, 1500);
}

// For every scalar function and floating type: an error that a tier allows is allowed on every lower tier.
TEST(Tiers, ALowerTierAllowsWhatAHigherOneDoes) {
  int looked = 0;
  for (const auto& [name, test] : cases_by_name()) {
    const bool function = test.desc.kind == EP_PRIMITIVE_unary || test.desc.kind == EP_PRIMITIVE_binary;
    if (!function || !is_floating(type_of(test.desc.operands[0])) || !name.ends_with("/special")) continue;
    const Ran ran(test);
    for (int64_t element : {0, 17, 40, 120}) {
      const uint64_t want = ran.bits(ran.want, element);
      if (!std::isfinite(decode_float(ran.dtype(), want + 1))) continue;
      for (uint64_t steps : {1, 5, 300}) {
        bool allowed = false;
        for (Tier tier : {Tier::full, Tier::portable, Tier::relaxed}) {
          const bool now = ran.with(element, want + steps, stating(tier)).ok();
          EXPECT_TRUE(now || !allowed) << name << ": " << steps << " steps pass on tier "
                                       << tier_name(tier == Tier::full ? tier
                                                                       : static_cast<Tier>(static_cast<int>(tier) + 1))
                                       << ", not on " << tier_name(tier);
          allowed = now;
          ++looked;
        }
      }
    }
  }
  EXPECT_GT(looked, 3000);
}

// Each composed bound, computed by hand.
TEST(Tiers, ABoundIsComposedOfTheRowsThatItsExpressionCalls) {
  const Level portable = {Tier::portable, false, false}, relaxed = {Tier::relaxed, false, false};
  const auto unary = [](int32_t op, const Level& level, double x) {
    return unary_range(op, constant(level, x), constant(level, 0.25), constant(level, 0.5));
  };
  // 1 / sqrt(4): a root of 2 +- 4.5 ulp, whose unit is 2^-22; the quotient 0.5 has an error of 2.5 ulp of 2^-24.
  const Range rsqrt = unary(EP_UNARY_rsqrt, portable, 4);
  EXPECT_NEAR(static_cast<double>(rsqrt.high - 0.5L), 0.5 * (4.5 * 0x1p-22 / 2) + 2.5 * 0x1p-24, 1e-12);
  // sinh(1) is our own formula, or (exp(1) - exp(-1)) / 2: 6 ulp of 2^-22, 6 ulp of 2^-25, the difference 1 ulp of
  // 2^-22, halved, and the product 1 ulp of 2^-23.
  const Range sinh = unary(EP_UNARY_sinh, portable, 1);
  EXPECT_NEAR(static_cast<double>(sinh.high - sinh.exact), (6 * 0x1p-22 + 6 * 0x1p-25 + 0x1p-22) / 2 + 0x1p-23, 1e-12);
  // The sine has an error of 2^-11, the cosine too.
  const Range tan = unary(EP_UNARY_tan, portable, 0.5);
  const double s = std::sin(0.5), c = std::cos(0.5);
  EXPECT_NEAR(static_cast<double>(tan.high), (s + 0x1p-11) / (c - 0x1p-11), 1e-6);
  EXPECT_NEAR(static_cast<double>(tan.low), (s - 0x1p-11) / (c + 0x1p-11), 1e-6);
  // asin(1) is the arc tangent of 1 / 0, whose root may be anything up to sqrt(2 ulp).
  const Range asin = unary(EP_UNARY_asin, portable, 1);
  EXPECT_NEAR(static_cast<double>(asin.low), std::atan(1 / std::sqrt(0x1p-23 + 0x1p-24)), 1.1e-3);
  // relu and neg are exact on every tier.
  for (int32_t op : {EP_UNARY_relu, EP_UNARY_neg, EP_UNARY_abs, EP_UNARY_floor}) {
    const Range exact = unary(op, relaxed, 1.75);
    EXPECT_EQ(exact.low, exact.high) << op;
  }
  // Beyond pi only the range of the function is promised.
  EXPECT_NEAR(static_cast<double>(unary(EP_UNARY_sin, portable, 20).low), -1 - 0x1p-11, 1e-9);
  EXPECT_GT(static_cast<double>(unary(EP_UNARY_sin, {Tier::portable, true, false}, 20).low), 0.9129452507);
}

// Kinds that have a tolerance per tier: the errors of their functions are added.
TEST(Tiers, OtherKindsAddWhatTheirFunctionsLose) {
  struct Wanted {
    const char* name;
    Tolerance portable, relaxed;
  };
  const Wanted wanted[] = {
      {"matmul/f32/ragged", {2, 131 * 1.5 + 2, 0}, {2, 131 * 32768.5 + 2, 0}},
      {"convolution/f32/3x3", {2, 45 * 1.5 + 2, 0}, {2, 45 * 32768.5 + 2, 0}},
      {"pooling/average/f32/3x3_stride_2", {4, 80, 0}, {2 + 8191.5, 64 + 8 * 8191.5, 0}},
      {"layer_norm/affine/f32/last", {14, 112, 0}, {8 + 2 * 8191.5, 64 + 16 * 8191.5, 0}},
      {"softmax/plain/f32/rows", {40 + 197 / 16.0 + 32 + 32 + 2, 0, 1}, {40 + 197 / 16.0 + 2 * 8188 + 8191.5, 0, 1}},
      {"softmax/log/f32/rows", {4, 32 + 197 / 256.0 + 32 + 4, 0}, {4 + 8188, 32 + 197 / 256.0 + 8188 + 4, 0}},
      {"reduce/mean/f32/last", {3, 2, 0}, {1 + 8191.5, 2, 0}},
      {"reduce/sum/f32/last", {0, 10, 0}, {0, 10, 0}},
      {"reduce/log_sum/f32/last", {5, 4 + 5 / 8.0 + 4, 0}, {5 + 8188, 4 + 5 / 8.0 + 4, 0}},
      {"reduce/l2_norm/f32/last", {9 + 4, 0, 1}, {9 + 8191.5, 0, 1}},
  };
  for (const Wanted& one : wanted) {
    const Case& test = case_named(one.name);
    for (const auto& [got, want] : {std::pair(test.portable, one.portable), std::pair(test.relaxed, one.relaxed)}) {
      EXPECT_DOUBLE_EQ(got.ulps, want.ulps) << one.name;
      EXPECT_DOUBLE_EQ(got.epsilons, want.epsilons) << one.name;
      EXPECT_DOUBLE_EQ(got.tiny, want.tiny) << one.name;
    }
    // The comparison uses these tolerances.
    const Ran ran(test);
    for (Tier tier : {Tier::portable, Tier::relaxed}) {
      const Tolerance& allowed = tier == Tier::portable ? test.portable : test.relaxed;
      const uint64_t want = ran.bits(ran.want, 3);
      const double distance = std::max(allowed.epsilons * 0x1p-23, allowed.tiny * 0x1p-126);
      const uint64_t last =
          std::max(want + static_cast<uint64_t>(allowed.ulps), last_within(DType::f32, want, distance));
      EXPECT_TRUE(ran.with(3, last, stating(tier)).ok()) << one.name;
      const Status beyond = ran.with(3, last + 1, stating(tier));
      EXPECT_NE(beyond.message().find(fmt::format("on tier {}", tier_name(tier))), std::string::npos)
          << one.name << ": " << beyond.message();
    }
  }
}

// A narrow dtype is computed in f32 and rounded once.
TEST(Tiers, ANarrowTypeIsRoundedOnce) {
  const Ran ran(case_named("unary/exp/f16/special"));
  for (int64_t element : {30, 60, 90, 150}) {
    const uint64_t want = ran.bits(ran.want, element);
    if (!std::isfinite(decode_float(DType::f16, want + 3)) || (want & 0x7fff) < 0x400) continue;
    EXPECT_TRUE(ran.with(element, want + 1, stating(Tier::portable)).ok());
    EXPECT_FALSE(ran.with(element, want + 2, stating(Tier::portable)).ok());
    EXPECT_TRUE(ran.with(element, want + 2, stating(Tier::relaxed)).ok()) << "8192 ulp of f32 are one of f16";
    EXPECT_FALSE(ran.with(element, want + 4, stating(Tier::relaxed)).ok());
  }
}

// --- denormals ---

// The results of a device that flushes: the reference on flushed inputs, flushed.
Image flushed(const Ran& ran, bool inputs, bool outputs) {
  const auto flush = [&](uint32_t operand, Image* image) {
    const DType dtype = type_of(ran.test.desc.operands[operand]);
    if (!is_floating(dtype)) return;
    for_each_element(ran.test.desc.operands[operand], [&](int64_t, int64_t place, const int64_t*) {
      const uint64_t bits = raw_bits(dtype, image->address(operand), place);
      if (is_denormal(dtype, bits)) put_bits(dtype, image->address(operand), place, bits & sign_bit(dtype));
    });
  };
  Image from = ran.start;
  for (uint32_t i = 1; inputs && i < ran.test.desc.operand_count; ++i) flush(i, &from);
  const Image made = ran.run(from);
  Image got = ran.want;
  for_each_element(ran.test.desc.operands[0], [&](int64_t, int64_t place, const int64_t*) {
    put_bits(ran.dtype(), got.address(0), place, raw_bits(ran.dtype(), made.bytes.data() + made.offsets[0], place));
  });
  if (outputs) flush(0, &got);
  return got;
}

TEST(Denormals, MayBeZeroWhereTheDeviceSaysSoAndNowhereElse) {
  int found = 0, told = 0;
  for (const auto& [name, test] : cases_by_name()) {
    if (!name.ends_with("/special") || test.fault != 0) continue;
    const DType type = type_of(test.desc.operands[1]);
    if (!is_floating(type) || test.desc.kind == EP_PRIMITIVE_softmax) continue;
    const Ran ran(test);
    for (const auto& [inputs, outputs] : {std::pair(true, true), {true, false}, {false, true}}) {
      const Image got = flushed(ran, inputs, outputs);
      for (Tier tier : {Tier::full, Tier::portable, Tier::relaxed}) {
        const Status says = compare_images(test, test.desc, ran.start, stating(tier, true), got, ran.want);
        EXPECT_TRUE(says.ok() || moves_elements(test.desc)) << name << ": " << says.message();
        const Status silent = compare_images(test, test.desc, ran.start, stating(tier), got, ran.want);
        if (silent.ok()) continue;  // the function's result does not depend on denormals
        ++found;
        told += silent.message().find("rule B02") != std::string::npos ? 1 : 0;
        EXPECT_TRUE(moves_elements(test.desc) || silent.message().find("rule B02") != std::string::npos)
            << name << ": " << silent.message();
      }
    }
  }
  std::printf("%d results with flushed denormals were refused, %d of them as unsaid\n", found, told);
  EXPECT_GT(found, 300);
  EXPECT_GT(told, 300);
}

TEST(Denormals, OfKindsThatOnlyMoveElementsAreKept) {
  const Ran ran(case_named("copy/f32_to_f32/special"));
  const Image got = flushed(ran, true, true);
  const Status said = compare_images(ran.test, ran.test.desc, ran.start, stating(Tier::full, true), got, ran.want);
  EXPECT_NE(said.message().find("(rule P14)"), std::string::npos) << said.message();
}

// GPUs flush in comparisons, but not the values that they move: maximum(0, -denormal) is then -denormal.
TEST(Denormals, MayBeFlushedByAComparisonAndKeptByTheResult) {
  const Case& test = case_named("binary/maximum/f32/special");
  const Ran ran(test);
  const uint64_t sign = sign_bit(DType::f32);
  int found = 0;
  for_each_element(test.desc.operands[0], [&](int64_t element, int64_t, const int64_t*) {
    const uint64_t x = ran.bits(ran.start, element, 1), y = ran.bits(ran.start, element, 2);
    if ((x & ~sign) != 0 || !is_denormal(DType::f32, y) || (y & sign) == 0) return;
    ++found;
    EXPECT_TRUE(ran.with(element, y, stating(Tier::full, true)).ok());
    EXPECT_NE(ran.with(element, y, stating(Tier::full)).message().find("rule B02"), std::string::npos);
    EXPECT_FALSE(ran.with(element, (y & sign) | 0x1234, stating(Tier::full, true)).ok()) << "no argument is this";
  });
  EXPECT_GT(found, 0);
  const Ran larger(case_named("binary/maximum/f32/vector"));
  EXPECT_FALSE(larger.with(0, 1, stating(Tier::full, true)).ok()) << "no argument is denormal";
}

// A normal result so near to the denormals that the bound reaches them.
TEST(Denormals, AResultAtTheEdgeMayVanish) {
  Ran ran(case_named("unary/exp/f32/vector"));
  const float x = -87.33654F;  // exp(x) is 38 steps above the least normal number
  std::memcpy(ran.start.address(1), &x, sizeof x);
  ran.want = ran.run(ran.start);
  const uint64_t want = ran.bits(ran.want, 0);
  ASSERT_FALSE(is_denormal(DType::f32, want));
  EXPECT_TRUE(ran.with(0, 0, stating(Tier::full, true)).ok());
  EXPECT_FALSE(ran.with(0, 0, stating(Tier::full)).ok());
  Ran square(case_named("unary/square/f32/vector"));
  const float y = 1.08420217249e-19F;  // the square is exactly the least normal number
  std::memcpy(square.start.address(1), &y, sizeof y);
  square.want = square.run(square.start);
  ASSERT_EQ(square.bits(square.want, 0), least_normal(DType::f32));
  EXPECT_FALSE(square.with(0, 0, stating(Tier::full, true)).ok()) << "an exact result is what it is";
}

// --- the statements of a device ---

TEST(Accuracy, ComparesWhatIsStatedWithWhatIsDemanded) {
  ep_primitive_desc desc = case_named("matmul/bf16_to_f32/odd").desc;
  Accuracy stated;
  EXPECT_EQ(tier_of(desc, stated), Tier::full);
  desc.precision = EP_PRECISION_FULL;
  EXPECT_EQ(why_below(desc, stated), "");
  stated.portable = uint64_t{1} << EP_DTYPE_f32;
  EXPECT_EQ(tier_of(desc, stated), Tier::portable) << "the lowest of its operands";
  EXPECT_EQ(why_below(desc, stated), "f32 is of tier portable, and the program demands full");
  desc.precision = EP_PRECISION_PORTABLE;
  EXPECT_EQ(why_below(desc, stated), "");
  stated.relaxed = uint64_t{1} << EP_DTYPE_bf16;
  EXPECT_EQ(why_below(desc, stated), "bf16 is of tier relaxed, and the program demands portable");
  for (int32_t none : {EP_PRECISION_DEFAULT, EP_PRECISION_RELAXED}) {
    desc.precision = none;
    EXPECT_EQ(why_below(desc, stated), "");
  }
  Accuracy flushing;
  flushing.flushed = uint64_t{1} << EP_DTYPE_f32;
  EXPECT_EQ(tier_of(desc, flushing), Tier::full);
  desc.precision = EP_PRECISION_FULL;
  EXPECT_EQ(why_below(desc, flushing),
            "denormals of f32 count as 0, and the program demands tier full, which keeps them");
  ep_primitive_desc moved = case_named("copy/f32_to_f32/special").desc;
  moved.precision = EP_PRECISION_FULL;
  EXPECT_EQ(why_below(moved, stated) + why_below(moved, flushing), "") << "bits that are moved are kept on every tier";
}

TEST(Accuracy, IsOneTierOfFloatingTypes) {
  EXPECT_EQ(why_no_accuracy({}), "");
  EXPECT_EQ(why_no_accuracy({floating_dtypes(), 0, floating_dtypes()}), "");
  EXPECT_EQ(why_no_accuracy({uint64_t{1} << EP_DTYPE_f16, uint64_t{1} << EP_DTYPE_f16, 0}),
            "states two tiers of accuracy for f16");
  EXPECT_EQ(why_no_accuracy({0, 0, uint64_t{1} << EP_DTYPE_i32}),
            fmt::format("states the accuracy of dtype {}, which is not a floating type", EP_DTYPE_i32));
}

}  // namespace
}  // namespace tenon::cases
