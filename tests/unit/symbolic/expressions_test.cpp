#include <gtest/gtest.h>

#include "core/symbolic/values.h"
#include "primitives/text/format.h"
#include "random_size.h"

namespace tenon::symbolic {
namespace {

class Sizes : public testing::Test {
 protected:
  SymDim symbol(int64_t lo, int64_t hi = Range::kEndless, int64_t divisor = 1) {
    return arena.symbol({.source = "", .range = {lo, hi}, .divisor = divisor});
  }
  std::string text(SymDim size) const { return arena.text(size); }

  Arena arena{"test"};
  ArenaScope scope{arena};
};

TEST_F(Sizes, EqualPolynomialsAreOneExpression) {
  const SymDim a = symbol(0), b = symbol(0);
  EXPECT_TRUE(identical((a + 1) * (a - 1), a * a - 1));
  EXPECT_TRUE(identical((a + b) * (a - b), a * a - b * b));
  EXPECT_TRUE(identical(a * b - b * a, 0));
  EXPECT_TRUE(identical((a + b) - b, a));
  EXPECT_EQ(text(2 * b + a * b * 3 + 1 - a), "3*S0*S1 - S0 + 2*S1 + 1");
}

TEST_F(Sizes, WhatDividesEvenlyLeavesTheQuotient) {
  const SymDim a = symbol(2), b = symbol(2), c = symbol(0), even = symbol(0, Range::kEndless, 8);
  EXPECT_TRUE(identical(floor_div(a * b * 768, b * 768), a));
  EXPECT_TRUE(identical(floor_div(a * b + a * c, b + c), a));
  EXPECT_EQ(text(floor_div(3 * a * b, 4 * b)), "(3*S0) // 4");
  EXPECT_EQ(text(floor_div(12 * a + b + 5, 4)), "3*S0 + (S1 + 1) // 4 + 1");
  EXPECT_EQ(text(floor_div(even + a, 8)), "S0 // 8 + S3 // 8");
  EXPECT_EQ(text(floor_div(a, c)), "S0 // S2");
  EXPECT_EQ(text(floor_div(a * c, c)), "(S0*S2) // S2") << "an error where the divisor is 0";
  EXPECT_EQ(text(floor_div(floor_div(a + 1, 2) + 1, 3)), "(S0 + 3) // 6");
  EXPECT_EQ(text(floor_div(2 * a + 1, 4)), "S0 // 2");
}

TEST_F(Sizes, QuotientAndRemainderMakeTheWhole) {
  const SymDim a = symbol(2), even = symbol(0, Range::kEndless, 8);
  EXPECT_TRUE(identical(floor_div(a, 8) * 8 + modulo(a, 8), a));
  EXPECT_EQ(text(8 * floor_div(a, 8)), "S0 - S0 % 8");
  EXPECT_TRUE(identical(8 * floor_div(even, 8), even));
  EXPECT_TRUE(identical(modulo(even + 3, 4), 3));
  EXPECT_EQ(text(modulo(2 * a, 8)), "2*(S0 % 4)");
  EXPECT_TRUE(identical(modulo(modulo(a, 12), 4), modulo(a, 4)));
  EXPECT_EQ(text(ceil_div(a, 4)), "(S0 + 3) // 4");
}

TEST_F(Sizes, BoundsDecideQuotientsMinimaAndMaxima) {
  const SymDim a = symbol(2, 9), b = symbol(10, 20), any = symbol(1);
  EXPECT_TRUE(identical(floor_div(a, 10), 0));
  EXPECT_TRUE(identical(modulo(a, b), a));
  EXPECT_TRUE(identical(min_size(a, b), a));
  EXPECT_TRUE(identical(max_size(a, b), b));
  EXPECT_TRUE(identical(min_size(any, any + a), any));
  EXPECT_TRUE(identical(max_size(floor_div(any, 2), any), any)) << "half is never more than the whole";
  EXPECT_TRUE(identical(max_size(any - min_size(any, 5), 0), any - min_size(any, 5)));
  EXPECT_EQ(text(min_size(any, b)), "min(S1, S2)");
}

TEST_F(Sizes, ANumberThatCannotBeTaggedIsRefusedOrSaturates) {
  EXPECT_EQ(SymDim(SymDim::kMost).number(), SymDim::kMost);
  EXPECT_EQ(SymDim(SymDim::kLeast).number(), SymDim::kLeast);
  EXPECT_EQ(SymDim::saturated(INT64_MAX).number(), SymDim::kMost);
  EXPECT_EQ(SymDim::saturated(INT64_MIN).number(), SymDim::kLeast);
  EXPECT_THROW(SymDim(SymDim::kMost + 1), Error);
  EXPECT_THROW(SymDim(SymDim::kMost) + 1, Error);
  EXPECT_THROW(SymDim(int64_t{1} << 40) * (int64_t{1} << 40), Error);
}

TEST_F(Sizes, AnExpressionThatGrowsTooLargeIsAnErrorThatNamesItsParts) {
  const SymDim a = symbol(0);
  try {
    (void)((SymDim::kMost * a) * 4);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("4611686018427387903*S0 and 4 is too large"), std::string::npos)
        << error.what();
  }
  SymDim power = a;
  EXPECT_THROW(for (int i = 0; i < 8; ++i) power *= power, Error);
  SymDim sum = 0;
  for (int i = 0; i < 20; ++i) sum += symbol(0);
  EXPECT_THROW(sum * sum * sum, Error);
}

TEST_F(Sizes, AnExpressionThatDoublesWithEachStepIsRefusedBeforeItsTextIsEndless) {
  SymDim size = symbol(0);
  try {
    for (int64_t i = 2; i < 64; ++i) size = min_size(floor_div(size, symbol(1)), floor_div(size + i, symbol(1)));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("test: a size is too large an expression"), std::string::npos);
  }
  EXPECT_LT(text(size).size(), 40000u);
}

TEST_F(Sizes, DividingByZeroIsAnError) {
  EXPECT_THROW(floor_div(SymDim(3), 0), Error);
  EXPECT_THROW(modulo(symbol(0), 0), Error);
}

TEST(SizeOfAnotherArena, IsRefused) {
  Arena one("one"), other("other");
  const SymDim size = one.symbol({});
  EXPECT_THROW(size + 1, Error) << "no arena is open";
  const ArenaScope scope(other);
  EXPECT_THROW(size + 1, Error);
  EXPECT_EQ(to_string(size), fmt::format("expression 0 of arena {}", one.serial()));
}

TEST(FrozenArena, MakesNothingNewAndACopyGoesOn) {
  Arena arena("first");
  const SymDim a = arena.symbol({});
  const SymDim sum = arena.add(a, 1);
  arena.freeze();
  EXPECT_TRUE(identical(arena.add(a, 1), sum)) << "this one is there";
  EXPECT_THROW(arena.add(a, 2), Error);
  EXPECT_THROW(arena.assume(a == 3), Error);
  EXPECT_THROW(arena.symbol({}), Error);
  Arena copy = arena;
  EXPECT_TRUE(identical(copy.add(a, 1), sum)) << "a copy has the same expressions under the same words";
  EXPECT_EQ(copy.text(copy.add(sum, sum)), "2*S0 + 2");
  EXPECT_EQ(arena.size(), 2u);
}

// Five symbols: of any sign, of sizes, of multiples.
struct Declared {
  Range range;
  int64_t divisor = 1;
};
constexpr Declared kDeclared[] = {{{2, 40}}, {{0, 9}}, {{1, Range::kEndless}}, {{0, 800}, 8}, {{-6, 6}}};

int64_t random_value(const Declared& declared, std::mt19937_64& random) {
  const int64_t hi = std::min<int64_t>(declared.range.hi, 50);
  const auto span = static_cast<uint64_t>((hi - declared.range.lo) / declared.divisor + 1);
  return declared.range.lo + static_cast<int64_t>(random() % span) * declared.divisor;
}

TEST(RandomSizes, HaveTheValueBoundsAndDivisorOfWhatIsWritten) {
  std::mt19937_64 random(20261122);
  int made = 0, compared = 0, refused = 0;
  for (int round = 0; round < 120; ++round) {
    Arena arena("random");
    const ArenaScope scope(arena);
    for (const Declared& each : kDeclared) (void)arena.symbol({"", each.range, each.divisor, std::nullopt});
    for (int i = 0; i < 60; ++i) {
      const auto tree = random_tree(random, 5, std::size(kDeclared));
      SymDim size = 0;
      try {
        size = size_of(*tree, arena);
      } catch (const Error&) {
        ++refused;
        continue;
      }
      ++made;
      for (int sample = 0; sample < 12; ++sample) {
        int64_t symbols[std::size(kDeclared)];
        Values values(arena);
        for (uint32_t s = 0; s < std::size(kDeclared); ++s) {
          symbols[s] = random_value(kDeclared[s], random);
          ASSERT_TRUE(values.bind(s, symbols[s]).ok());
        }
        const auto expected = value_of(*tree, symbols);
        if (!expected) continue;
        const Result<int64_t> value = values.of(size);
        ASSERT_TRUE(value.ok()) << value.status().message();
        ASSERT_EQ(value.value(), *expected) << arena.text(size);
        ASSERT_TRUE(arena.range(size).holds(*expected)) << arena.text(size) << " is " << *expected << ", not in ["
                                                        << arena.range(size).lo << ", " << arena.range(size).hi << "]";
        const int64_t divisor = arena.divisor(size);
        ASSERT_TRUE(divisor == 0 ? *expected == 0 : *expected % divisor == 0) << arena.text(size);
        ++compared;
      }
    }
  }
  std::printf("%d sizes made, %d refused, %d values compared\n", made, refused, compared);
  EXPECT_GT(compared, 30000);
}

}  // namespace
}  // namespace tenon::symbolic
