#include <gtest/gtest.h>

#include "random_size.h"

namespace tenon::symbolic {
namespace {

constexpr int64_t kSymbols = 4;

Arena with_symbols() {
  Arena arena("text");
  for (int64_t i = 0; i < kSymbols; ++i) (void)arena.symbol({.source = "", .range = {1, Range::kEndless}});
  return arena;
}

TEST(TextOfSizes, ReadsBackAsTheSameExpression) {
  std::mt19937_64 random(7);
  int read = 0;
  Arena arena = with_symbols();
  const ArenaScope scope(arena);
  for (int i = 0; i < 1500; ++i) {
    try {
      const SymDim size = size_of(*random_tree(random, 5, kSymbols), arena);
      const Result<SymDim> back = arena.parse(arena.text(size));
      ASSERT_TRUE(back.ok()) << back.status().message();
      ASSERT_TRUE(identical(back.value(), size)) << arena.text(size) << " became " << arena.text(back.value());
      ++read;
    } catch (const Error&) {
      continue;  // divides by 0
    }
  }
  EXPECT_GT(read, 1000);
}

TEST(TextOfSizes, DoesNotDependOnWhatWasMadeBefore) {
  Arena first = with_symbols();
  Arena second = with_symbols();
  const char* parts[] = {"S1 // 3", "S0 // 2", "S3 % 5", "min(S0, S1)"};
  SymDim a = 0, b = 0;
  for (const char* part : parts) a = first.add(a, first.parse(part).value());
  for (size_t i = std::size(parts); i-- > 0;) b = second.add(b, second.parse(parts[i]).value());
  EXPECT_EQ(first.text(a), second.text(b));
}

TEST(TextOfSizes, IsReadAsPeopleWriteIt) {
  Arena arena = with_symbols();
  const auto canonical = [&](const char* text) { return arena.text(arena.parse(text).value()); };
  EXPECT_EQ(canonical("2 * (S0+S1) * S0 - -3"), "2*S0^2 + 2*S0*S1 + 3");
  EXPECT_EQ(canonical("ceil_div(S0, 4) // 1"), "(S0 + 3) // 4");
  EXPECT_EQ(canonical("-(S0 // 2) + S1"), "S1 - S0 // 2");
  EXPECT_EQ(canonical("-(S1 // 2)"), "-(S1 // 2)");
  EXPECT_EQ(canonical("S0 ^ 3 % 7"), "(S0^3) % 7");
  EXPECT_EQ(arena.text(arena.parse_condition("S0 % 8 == 0").value()), "S0 % 8 == 0");
  EXPECT_EQ(arena.text(arena.parse_condition("S0 broadcasts S1+1").value()), "S0 broadcasts S1 + 1");
}

TEST(TextOfSizes, ThatIsWrongIsAnErrorWithItsPosition) {
  Arena arena = with_symbols();
  const std::pair<const char*, const char*> wrong[] = {
      {"", "at position 0 a size is expected"},
      {"S0 +", "at position 4 a size is expected"},
      {"S9", "at position 2 a symbol from S0 to S3 is expected"},
      {"(S0", "at position 3 ')' is expected"},
      {"S0 S1", "at position 3 nothing more is expected"},
      {"99999999999999999999", "at position 0 the number is too large"},
      {"9223372036854775807", "9223372036854775807 cannot be a size"},
      {"S0 // 0", "divided by 0"},
      {"S0 ^ 65", "a power from 1 to 64 is expected"},
      {"min(S0)", "',' is expected"},
      {"minimum(S0, 1)", "a size is expected"},
  };
  for (const auto& [text, message] : wrong) {
    const Result<SymDim> read = arena.parse(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(read.status().message().find(message), std::string::npos) << read.status().message();
  }
  EXPECT_FALSE(arena.parse(std::string(100000, '(')).ok());
  EXPECT_FALSE(arena.parse(std::string(100000, '-')).ok());
}

TEST(TextOfSizes, ManglesToAnErrorOrToASizeThatReadsBack) {
  std::mt19937_64 random(11);
  const std::string letters = "S0123456789+-*/%^(), minaxbroadcst_=<!\"";
  int sizes = 0;
  for (int i = 0; i < 100; ++i) {
    Arena arena = with_symbols();
    const ArenaScope scope(arena);
    for (int j = 0; j < 60; ++j) {
      std::string text;
      try {
        text = arena.text(size_of(*random_tree(random, 4, kSymbols), arena));
      } catch (const Error&) {
      }
      for (uint64_t edits = random() % 4; edits-- > 0 && !text.empty();) {
        const size_t at = random() % text.size();
        const char letter = letters[random() % letters.size()];
        if (random() % 3 == 0) {
          text.erase(at, 1 + random() % 3);
        } else if (random() % 2 == 0) {
          text.insert(at, 1, letter);
        } else {
          text[at] = letter;
        }
      }
      const Result<SymDim> read = arena.parse(text);
      if (!read.ok()) continue;
      ++sizes;
      ASSERT_TRUE(identical(arena.parse(arena.text(read.value())).value(), read.value())) << text;
    }
  }
  EXPECT_GT(sizes, 1000);
}

TEST(TextOfArenas, ReadsBackWithAllThatItKnows) {
  Arena arena("recording 3");
  {
    const ArenaScope scope(arena);
    const SymDim batch = arena.input_size("axis 0 of \"x\"", 12);
    const SymDim length = arena.input_size("axis 1 of x", 128);
    const SymDim other = arena.input_size("axis 0 of y", 12);
    (void)arena.input_size("axis 1 of y", 1);
    const SymDim found = arena.symbol({.source = "nonzero", .range = {0, 4096}});
    arena.context("add");
    EXPECT_TRUE(static_cast<bool>(batch == other));
    EXPECT_TRUE(static_cast<bool>(modulo(length, 8) == 0));
    EXPECT_FALSE(static_cast<bool>(batch > length));
    arena.context("reshape");
    EXPECT_TRUE(expect(found == 3 * batch));
    arena.assume(length <= 512);
  }
  const std::string text = arena.text();
  EXPECT_EQ(text, R"(symbol S0 "axis 0 of \"x\"" in [0, ] hint 12
symbol S1 "axis 1 of x" in [0, ] hint 128
symbol S2 "axis 0 of y" in [0, ] hint 12
symbol S3 "axis 1 of y" in [0, ] hint 1
symbol S4 "nonzero" in [0, 4096]
guard "" 1 < S0
guard "" 1 < S1
guard "" 1 < S2
guard "" S3 == 1
guard "add" S0 == S2
guard "add" S1 % 8 == 0
guard "add" S0 <= S1
check "reshape" 3*S0 == S4
assumed "reshape" S1 <= 512
)");
  Result<Arena> read = parse_arena(text, "read");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value().text(), text);
  Arena& back = read.value();
  EXPECT_EQ(back.text(back.resolve(back.symbol_at(4))), "3*S0");
  EXPECT_EQ(back.text(back.resolve(back.symbol_at(2))), "S0");
  EXPECT_EQ(back.range(back.symbol_at(1)), (Range{2, 512}));
  EXPECT_EQ(back.divisor(back.symbol_at(1)), 8);
}

TEST(TextOfArenas, ThatIsWrongIsAnError) {
  for (const char* text : {"symbol S1 \"\" in [0, ]", "symbol S0 \"\" in [0, ] multiple 0", "guard \"\" S0 == 1",
                           "symbol S0 \"\" in [4, ] hint 3", "symbol S0 \"\" in [4, ]\nguard \"\" S0 == 3", "hello",
                           "symbol S0 \"", "symbol S0 \"\\"}) {
    EXPECT_FALSE(parse_arena(text, "wrong").ok()) << text;
  }
}

}  // namespace
}  // namespace tenon::symbolic
