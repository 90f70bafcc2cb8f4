// primitives/text: the types that a message accepts, and how it prints them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "primitives/shape/shape.h"
#include "primitives/text/format.h"
#include "primitives/text/nearest.h"
#include "primitives/text/quoted.h"
#include "primitives/text/visible.h"

namespace tenon {
namespace {

struct Named {
  std::string name;
};
std::string to_string(const Named& named) { return fmt::format("<{}>", named.name); }

static_assert(text_detail::HasToString<Named> && text_detail::HasToString<Dims>);
static_assert(!text_detail::HasToString<int> && !text_detail::HasToString<double>);
static_assert(!text_detail::HasToString<std::string> && !text_detail::HasToString<fmt::string_view>);

TEST(Format, WritesWhatHasAToStringOfItsOwn) {
  EXPECT_EQ(fmt::format("{} of {}", Named{"a"}, Dims{2, 3}), "<a> of [2, 3]");
}

TEST(Format, WritesBytesAsNumbersAndCharactersAsText) {
  EXPECT_EQ(fmt::format("{} {} {}", uint8_t{200}, int8_t{-7}, 'x'), "200 -7 x");
  EXPECT_EQ(fmt::format("{} {}", std::numeric_limits<int64_t>::min(), std::numeric_limits<uint64_t>::max()),
            "-9223372036854775808 18446744073709551615");
}

TEST(Format, WritesTheShortestNumberThatReadsBackTheSame) {
  EXPECT_EQ(fmt::format("{} {} {}", 0.1, 0.1f, 1e300), "0.1 0.1 1e+300");
  EXPECT_EQ(fmt::format("{:g} {:.2f}", 1.0 / 3.0, 2.0 / 3.0), "0.333333 0.67");
  EXPECT_EQ(fmt::format("{} {}", HUGE_VAL, -HUGE_VAL), "inf -inf");
}

TEST(Nearest, FindsSmallSlipsOnly) {
  const std::vector<std::string> known = {"TENON_DEVICE", "TENON_TRACE", "TENON_THREADS"};
  EXPECT_EQ(nearest_word("TENON_DEVCE", known), "TENON_DEVICE");
  EXPECT_EQ(nearest_word("TENON_THREAD", known), "TENON_THREADS");
  EXPECT_EQ(nearest_word("SOMETHING_ELSE", known), "");
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("rnu", "run"), 1u);
  EXPECT_EQ(edit_distance("ab", "ba"), 1u);
  EXPECT_EQ(edit_distance("ca", "abc"), 3u) << "letters that were swapped are not changed again";
  EXPECT_EQ(nearest_word("npu2", {"cpu", "null"}), "") << "half of another word is not a misspelling";
  EXPECT_EQ(nearest_word("rnu", {"compare", "run"}), "run");
}

TEST(Visible, IsOneLineThatOnlyShows) {
  EXPECT_EQ(visible("/enc/Conv_1 \u00e9\u4e2d\U0001f600"), "/enc/Conv_1 \u00e9\u4e2d\U0001f600");
  EXPECT_EQ(visible("a\n\t\r\x1b[31mb\x7f\x07"), "a\\n\\t\\r\\x1b[31mb\\x7f\\x07");
  EXPECT_EQ(visible("\u009b2J \u202eabc \u2028 \u2066 \u061c"), "\\u009b2J \\u202eabc \\u2028 \\u2066 \\u061c");
  EXPECT_EQ(visible(std::string_view("\0x", 2)), "\\x00x");
  EXPECT_EQ(visible("\xff \xc3"), "\\xff \\xc3") << "no UTF-8";
  EXPECT_EQ(visible("\xc0\x8a \xed\xa0\x80 \xf4\x90\x80\x80"), "\\xc0\\x8a \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80")
      << "longer than it must be, half a pair, beyond the last character";
  EXPECT_EQ(visible_lines("two\nlines\x1b"), "two\nlines\\x1b");
  EXPECT_EQ(quoted("a\nb"), "'a\\nb'");
}

TEST(Quoted, ReadsBack) {
  for (const std::string text : {"", "plain", "a \"rich\" one", "back\\slash\\", "two\nlines", "\\n"}) {
    const std::string written = in_quotes(text);
    EXPECT_EQ(written.find('\n'), std::string::npos);
    std::string read = "old";
    EXPECT_EQ(read_quoted(written + " and more", &read), written.size());
    EXPECT_EQ(read, text);
  }
  std::string read;
  EXPECT_EQ(read_quoted("no quote", &read), 0u);
  EXPECT_EQ(read_quoted("\"no end\\\"", &read), 0u);
}

}  // namespace
}  // namespace tenon
