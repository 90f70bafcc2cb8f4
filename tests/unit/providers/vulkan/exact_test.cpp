// The quotient and root of the shaders, compiled as C++ from the same text, with estimates worse than any device may
// give. Compared with the processor's IEEE results.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace tenon::provider::vulkan {
namespace glsl {

using uint = uint32_t;
using std::min;

uint floatBitsToUint(float x) { return std::bit_cast<uint>(x); }
float uintBitsToFloat(uint bits) { return std::bit_cast<float>(bits); }
int findMSB(uint x) { return static_cast<int>(std::bit_width(x)) - 1; }

int steps_off = 0;
float off(float estimate) { return uintBitsToFloat(floatBitsToUint(estimate) + static_cast<uint>(steps_off)); }
#define ESTIMATE_QUOTIENT(x, y) off((x) / (y))
#define ESTIMATE_ROOT(x) off(std::sqrt(x))
#include "sdk/provider/glsl/exact.glsl"

}  // namespace glsl

namespace {

constexpr int quotient_steps = 3;
constexpr int root_steps = 6;

float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }
uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
bool same(float x, float y) { return bits_of(x) == bits_of(y) || (std::isnan(x) && std::isnan(y)); }

// True if x / y is right for every estimate.
bool divides(float x, float y) {
  bool right = true;
  for (glsl::steps_off = -quotient_steps; glsl::steps_off <= quotient_steps; ++glsl::steps_off) {
    right = right && same(glsl::exact_quotient(x, y), x / y);
  }
  return right;
}

std::vector<float> edges() {
  std::vector<float> values;
  for (uint32_t bits :
       {0x0U,        0x1U,        0x2U,        0x3U,        0x400000U,   0x7fffffU,   0x800000U,   0x800001U,
        0xffffffU,   0x1000000U,  0x3f7fffffU, 0x3f800000U, 0x3f800001U, 0x3fffffffU, 0x40000000U, 0x40400000U,
        0x4b800000U, 0x7effffffU, 0x7f000000U, 0x7f7fffffU, 0x7f800000U, 0x7f800001U, 0x7fc00000U, 0x7fffffffU}) {
    values.push_back(float_of(bits));
    values.push_back(float_of(bits | 0x80000000U));
  }
  return values;
}

TEST(ExactQuotient, IsRightAtEveryEdge) {
  for (float x : edges()) {
    for (float y : edges()) EXPECT_TRUE(divides(x, y)) << x << " / " << y;
  }
}

TEST(ExactQuotient, IsRightOnRandomBits) {
  std::mt19937 random(11);
  int wrong = 0;
  for (int i = 0; i < 1'000'000; ++i) wrong += divides(float_of(random()), float_of(random())) ? 0 : 1;
  EXPECT_EQ(wrong, 0);
}

// Quotients near the midpoint of two floats: x is nearest to y times a number of 25 digits.
TEST(ExactQuotient, IsRightBesideTheMiddle) {
  std::mt19937 random(12);
  int wrong = 0;
  for (int i = 0; i < 500'000; ++i) {
    const double middle = 0x1000001 + 2.0 * (random() & 0x7fffffU);
    const float y = float_of(0x3f800000U + (random() & 0x7fffffU));
    const auto x = static_cast<float>(middle * y);
    wrong += divides(x, y) && divides(std::nextafter(x, 0.0F), y) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
}

// Denormal quotients, including those at the midpoint of two floats.
TEST(ExactQuotient, IsRightWhereTheResultIsDenormal) {
  std::mt19937 random(13);
  int wrong = 0;
  int ties = 0;
  for (int i = 0; i < 500'000; ++i) {
    const float y = std::ldexp(i % 2 == 0 ? 1.0F : 1.0F + static_cast<float>(random() & 0x7fffffU) / 8388608.0F,
                               static_cast<int>(random() % 40));
    const auto x = static_cast<float>(std::ldexp(static_cast<double>(random() & 0x1ffffffU), -150) * y);
    const double exact = std::ldexp(static_cast<double>(x) / y, 149);
    ties += exact - std::floor(exact) == 0.5 ? 1 : 0;
    wrong += divides(x, y) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(ties, 10'000);
}

// Every significand with an odd and an even exponent.
TEST(ExactRoot, IsRightOnEverySignificand) {
  int wrong = 0;
  uint32_t noise = 1;
  for (uint32_t bits = 0x3f800000U; bits < 0x40800000U; ++bits) {
    noise = noise * 1664525 + 1013904223;
    glsl::steps_off = static_cast<int>((noise >> 16) % (2 * root_steps + 1)) - root_steps;
    wrong += same(glsl::exact_root(float_of(bits)), std::sqrt(float_of(bits))) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
}

TEST(ExactRoot, IsRightAtEveryEdgeAndExponent) {
  std::mt19937 random(14);
  std::vector<float> values = edges();
  for (int i = 0; i < 200'000; ++i) values.push_back(float_of(random()));
  for (int i = 0; i < 50'000; ++i) values.push_back(float_of(random() >> (9 + random() % 23)));  // denormals
  int wrong = 0;
  for (glsl::steps_off = -root_steps; glsl::steps_off <= root_steps; ++glsl::steps_off) {
    for (float x : values) wrong += same(glsl::exact_root(x), std::sqrt(x)) ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tenon::provider::vulkan
