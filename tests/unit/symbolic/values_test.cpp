#include "core/symbolic/values.h"

#include <gtest/gtest.h>

namespace tenon::symbolic {
namespace {

class ValuesOf : public testing::Test {
 protected:
  SymDim size(const char* text) { return arena.parse(text).value(); }
  static std::string message(const Status& status) { return status.message(); }

  Arena arena{"model"};
  SymDim batch = arena.symbol({.source = "axis 0 of x", .range = {1, 4096}, .divisor = 4});
  SymDim length = arena.symbol({.source = "axis 1 of x"});
};

TEST_F(ValuesOf, SizesFollowFromTheSymbols) {
  const SymDim both = size("S0*S1 + (S1 + 3) // 2");
  Values values(arena);
  ASSERT_TRUE(values.bind(0, 8).ok());
  ASSERT_TRUE(values.bind(1, 100).ok());
  EXPECT_EQ(values.of(both).value(), 851);
  EXPECT_EQ(values.of(7).value(), 7);
  const ArenaScope scope(arena);
  EXPECT_EQ(values.of("op", SymDims{batch, 3, length}).value(), (Dims{8, 3, 100}));
}

TEST_F(ValuesOf, AValueThatTheDeclarationExcludesIsRefusedByName) {
  Values values(arena);
  EXPECT_EQ(message(values.bind(0, 4100)),
            "S0 (axis 0 of x) is 4100, but it must be from 1 to 4096 and a multiple of 4.");
  EXPECT_FALSE(values.bind(0, 6).ok());
  EXPECT_EQ(message(values.bind(1, -1)), "S1 (axis 1 of x) is -1, but it must be at least 0.");
}

TEST_F(ValuesOf, OverflowNamesTheExpressionAndItsSymbols) {
  const SymDim square = size("S1*S1 + S0"), quotient = size("S0 // S1"), deep = size("S1^5");
  Values values(arena);
  ASSERT_TRUE(values.bind(0, 4).ok());
  ASSERT_TRUE(values.bind(1, int64_t{1} << 40).ok());
  EXPECT_EQ(message(values.of(square).status()),
            "The size S1^2 + S0 is more than int64 can hold, where S0 (axis 0 of x) is 4 and S1 (axis 1 of x) is "
            "1099511627776.");
  EXPECT_FALSE(values.of(deep).ok());
  Values zero(arena);
  ASSERT_TRUE(zero.bind(0, 4).ok());
  ASSERT_TRUE(zero.bind(1, 0).ok());
  EXPECT_NE(message(zero.of(quotient).status()).find("S0 // S1 divides by 0, where"), std::string::npos);
  Values none(arena);
  EXPECT_EQ(message(none.of(length).status()), "The size S1 has no value, where S1 (axis 1 of x) has no value.");
}

TEST_F(ValuesOf, ASumMayPassInt64OnItsWay) {
  const SymDim difference = size("S1*S1*S1 - S1*S1*S1 // 7 * 7");  // the remainder of a number of 120 bits
  Values values(arena);
  ASSERT_TRUE(values.bind(1, (int64_t{1} << 20)).ok());
  EXPECT_EQ(values.of(difference).value(), (int64_t{1} << 60) % 7);
}

TEST_F(ValuesOf, ANegativeDimOrTooManyBytesIsAnErrorOfTheOp) {
  const SymDim rest = size("S1 - 10");
  Values values(arena);
  ASSERT_TRUE(values.bind(1, 3).ok());
  const ArenaScope scope(arena);
  EXPECT_EQ(message(values.of("slice", SymDims{2, rest}).status()),
            "slice: the size S1 - 10 is -7, where S1 (axis 1 of x) is 3.");
  Values large(arena);
  ASSERT_TRUE(large.bind(1, int64_t{1} << 40).ok());
  EXPECT_EQ(large.of("full", SymDims{length, length}).status().code(), Code::invalid_argument);
}

TEST_F(ValuesOf, AGuardThatBreaksIsFoundAndACheckThatBreaksIsAnErrorOfItsOp) {
  const ArenaScope scope(arena);
  const SymDim tokens = arena.input_size("axis 0 of y", 16);
  const SymDim found = arena.symbol({.source = "nonzero"});
  EXPECT_TRUE(static_cast<bool>(modulo(tokens, 8) == 0));
  arena.context("reshape");
  EXPECT_TRUE(expect(found == 3 * tokens));
  arena.freeze();
  const auto at = [&](int64_t y, int64_t data) {
    Values values(arena);
    EXPECT_TRUE(values.bind(2, y).ok());
    EXPECT_TRUE(values.bind(3, data).ok());
    return values;
  };
  Values good = at(24, 72), odd = at(20, 60), lie = at(24, 71);
  EXPECT_EQ(good.broken_guard(), nullptr);
  EXPECT_TRUE(good.check().ok());
  ASSERT_NE(odd.broken_guard(), nullptr);
  EXPECT_EQ(arena.text(odd.broken_guard()->condition), "S2 % 8 == 0");
  EXPECT_EQ(message(lie.check()), "reshape: 3*S2 == S3 must hold, but S2 (axis 0 of y) is 24 and S3 (nonzero) is 71.");
}

}  // namespace
}  // namespace tenon::symbolic
