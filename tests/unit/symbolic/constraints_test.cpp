#include <gtest/gtest.h>

#include "core/symbolic/values.h"

namespace tenon::symbolic {
namespace {

class Constraints : public testing::Test {
 protected:
  std::vector<std::string> noted(Origin origin = Origin::guard) const {
    std::vector<std::string> texts;
    for (const Constraint& constraint : arena.constraints()) {
      if (constraint.origin == origin) texts.push_back(arena.text(constraint.condition));
    }
    return texts;
  }
  std::string text(SymDim size) { return arena.text(arena.resolve(size)); }
  // A size without a hint, like the result of nonzero.
  SymDim found(int64_t hi = SymDim::kMost) { return arena.symbol({.source = "result 0 of nonzero", .range = {0, hi}}); }

  using Texts = std::vector<std::string>;
  Arena arena{"recording 3"};
  ArenaScope scope{arena};
};

TEST_F(Constraints, SizesOfOneAndZeroAreGuardedAtOnceAndBecomeNumbers) {
  EXPECT_TRUE(identical(arena.input_size("a", 1), 1));
  EXPECT_TRUE(identical(arena.input_size("b", 0), 0));
  EXPECT_EQ(text(arena.input_size("c", 2)), "S2");
  EXPECT_EQ(noted(), (Texts{"S0 == 1", "S1 == 0", "1 < S2"}));
}

TEST_F(Constraints, AnEqualityIsAskedOnceAndThenSubstituted) {
  const SymDim a = arena.input_size("a", 5), b = arena.input_size("b", 5);
  const SymDim before = 2 * b + 1;
  EXPECT_TRUE(static_cast<bool>(a == b));
  EXPECT_TRUE(static_cast<bool>(b == a));
  EXPECT_TRUE(static_cast<bool>(a * b == b * b));
  EXPECT_EQ(noted(), (Texts{"1 < S0", "1 < S1", "S0 == S1"}));
  EXPECT_EQ(text(before), "2*S0 + 1");
  EXPECT_TRUE(identical(a - b, 0));
}

TEST_F(Constraints, WhatFollowsFromARangeIsNoGuard) {
  const SymDim a = arena.input_size("a", 5);
  EXPECT_FALSE(static_cast<bool>(a == 1));
  EXPECT_TRUE(static_cast<bool>(a * a > a));
  EXPECT_TRUE(static_cast<bool>(2 * a != 7));
  EXPECT_FALSE(static_cast<bool>(4 * a + 2 == 12 * a + 4));
  EXPECT_EQ(noted(), (Texts{"1 < S0"}));
  EXPECT_TRUE(static_cast<bool>(a > 3));
  EXPECT_TRUE(static_cast<bool>(a >= 4)) << "the same";
  EXPECT_FALSE(static_cast<bool>(a == 2));
  EXPECT_TRUE(static_cast<bool>(a != 9));
  EXPECT_FALSE(static_cast<bool>(3 * a == 27));
  EXPECT_EQ(noted(), (Texts{"1 < S0", "3 < S0", "S0 != 9"}));
}

TEST_F(Constraints, DivisibilityIsGuardedAndUsed) {
  const SymDim a = arena.input_size("a", 64);
  EXPECT_TRUE(static_cast<bool>(modulo(a, 8) == 0));
  EXPECT_TRUE(static_cast<bool>(modulo(a * 3, 4) == 0));
  EXPECT_TRUE(static_cast<bool>(2 * floor_div(a, 2) == a)) << "down and up again, as in a U-Net";
  EXPECT_EQ(noted(), (Texts{"1 < S0", "S0 % 8 == 0"}));
  const SymDim b = arena.input_size("b", 33);
  EXPECT_FALSE(static_cast<bool>(2 * floor_div(b, 2) == b));
  EXPECT_EQ(noted().back(), "S1 % 2 != 0");
}

TEST_F(Constraints, EqualProductsLoseTheFactorsThatTheyShare) {
  const SymDim batch = arena.input_size("a", 4), length = arena.input_size("b", 16);
  const SymDim rows = arena.input_size("c", 64);
  EXPECT_TRUE(static_cast<bool>(batch * length * 768 == rows * 768));
  EXPECT_EQ(noted().back(), "S0*S1 == S2");
  EXPECT_EQ(text(rows), "S0*S1");
  EXPECT_TRUE(identical(floor_div(rows * 768, batch * 768), length));
  const SymDim again = arena.input_size("d", 16);
  EXPECT_TRUE(static_cast<bool>(batch * length == batch * again));
  EXPECT_EQ(noted().back(), "S1 == S3");
}

TEST_F(Constraints, AnEqualityThatNoSymbolSolvesIsStillKnown) {
  const SymDim a = arena.input_size("a", 6), b = arena.input_size("b", 4);
  EXPECT_TRUE(static_cast<bool>(2 * a == 3 * b));
  EXPECT_TRUE(static_cast<bool>(4 * a + 1 == 6 * b + 1));
  EXPECT_FALSE(static_cast<bool>(2 * a < 3 * b));
  EXPECT_EQ(noted().size(), 3u);
}

TEST_F(Constraints, WhatWasKnownOfASymbolIsKnownOfWhatReplacesIt) {
  const SymDim a = arena.input_size("a", 8), b = arena.input_size("b", 8);
  EXPECT_TRUE(static_cast<bool>(b >= 7));
  EXPECT_TRUE(static_cast<bool>(modulo(b, 4) == 0));
  EXPECT_TRUE(static_cast<bool>(a == b));
  EXPECT_EQ(arena.range(a).lo, 7);
  EXPECT_EQ(arena.divisor(a), 4);
  EXPECT_EQ(noted().size(), 5u);
}

TEST_F(Constraints, ADivisorOfASumIsNoneOfItsParts) {
  const SymDim a = arena.input_size("a", 6);
  const SymDim found = arena.symbol({.source = "found", .divisor = 4});
  EXPECT_TRUE(expect(found == a + 2));
  EXPECT_EQ(text(found), "S0 + 2");
  EXPECT_EQ(arena.divisor(a), 1);
}

TEST_F(Constraints, BroadcastingGuardsWhichOfTheTwoRepeats) {
  const SymDim a = arena.input_size("a", 5), b = arena.input_size("b", 5), half = floor_div(a, 5);
  SymDim out = 0;
  ASSERT_TRUE(broadcast_size(a, b, &out));
  EXPECT_EQ(text(out), "S0");
  ASSERT_TRUE(broadcast_size(half, b, &out));
  EXPECT_EQ(text(out), "S0");
  EXPECT_EQ(noted(), (Texts{"1 < S0", "1 < S1", "S0 == S1", "S0 // 5 == 1"}));
  const SymDim c = arena.input_size("c", 6);
  EXPECT_FALSE(broadcast_size(a, c, &out)) << "5 and 6";
}

TEST_F(Constraints, AMinimumThatIsItsOperandSaysWhichIsLess) {
  const SymDim length = arena.input_size("a", 100);
  const SymDim rows = min_size(length, 2048);
  EXPECT_EQ(text(rows), "min(S0, 2048)");
  EXPECT_TRUE(static_cast<bool>(rows * 2 == length * 2));
  EXPECT_EQ(noted(), (Texts{"1 < S0", "S0 <= 2048"}));
  EXPECT_EQ(text(rows), "S0");
  const SymDim other = arena.input_size("b", 100);
  EXPECT_TRUE(static_cast<bool>(max_size(other, 7) != 7));
  EXPECT_EQ(noted().back(), "7 < S1");
}

TEST_F(Constraints, BoundsOfSlicesAtTheExtremesMeanTheEnds) {
  const SymDim length = arena.input_size("a", 100);
  EXPECT_EQ(text(clamp_size(SymDim::saturated(INT64_MAX), 0, length)), "S0");
  EXPECT_EQ(text(clamp_size(SymDim::saturated(INT64_MIN) + length, 0, length)), "0");
  EXPECT_TRUE(static_cast<bool>(length - 2 <= SymDim::kMost));
  EXPECT_TRUE(static_cast<bool>(length + 2 >= SymDim::kLeast));
  EXPECT_EQ(noted().size(), 1u);
}

TEST_F(Constraints, AChoiceThatRestsOnDataEndsTheRecording) {
  const SymDim rows = found(100);
  arena.context("where");
  EXPECT_TRUE(static_cast<bool>(rows <= 100)) << "the range decides";
  try {
    (void)static_cast<bool>(rows == 3);
    FAIL();
  } catch (const Undecided& undecided) {
    EXPECT_STREQ(
        undecided.what(),
        "The condition S0 == 3 decides how where continues, but its sizes are known only when the program runs.");
  }
  EXPECT_TRUE(arena.constraints().empty());
}

TEST_F(Constraints, ARequirementOnDataBecomesACheckOfTheRun) {
  const SymDim rows = found(), batch = arena.input_size("a", 5);
  arena.context("add");
  SymDim out = 0;
  ASSERT_TRUE(broadcast_size(rows, batch, &out));
  EXPECT_EQ(text(out), "S1") << "what is above 1 does not repeat";
  EXPECT_EQ(noted(Origin::check), (Texts{"S0 broadcasts S1"}));
  const SymDim other = found();
  EXPECT_TRUE(expect(other == 2 * batch));
  EXPECT_EQ(text(other), "2*S1");
  EXPECT_FALSE(expect(other == 2 * batch + 1)) << "refused at once";
  ASSERT_TRUE(broadcast_size(rows, found(), &out));
  EXPECT_EQ(text(out), "broadcast(S0, S3)");
}

TEST_F(Constraints, ALyingHintIsAnErrorThatNamesTheSymbol) {
  try {
    (void)arena.symbol({.source = "axis 0 of x", .range = {8, 16}, .divisor = 4, .hint = 10});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "S0 (axis 0 of x) has the hint 10, which its declaration excludes: it is from 8 to 16 and a multiple "
                 "of 4.");
  }
}

TEST_F(Constraints, ManyEqualitiesStayCheap) {
  std::vector<SymDim> sizes;
  for (int i = 0; i < 100; ++i) sizes.push_back(arena.input_size("x", 7));
  SymDim product = 1;
  for (const SymDim size : sizes) {
    EXPECT_TRUE(static_cast<bool>(size == sizes[0]));
    product = modulo(product + size * 3, 97);
  }
  EXPECT_EQ(noted().size(), 199u);
}

}  // namespace
}  // namespace tenon::symbolic
