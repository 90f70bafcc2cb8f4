#include "loader/settings/value.h"

#include <gtest/gtest.h>

namespace tenon::loader {
namespace {

TEST(Value, BytesTakeUnits) {
  uint64_t value = 0;
  EXPECT_EQ(parse_bytes("4096", value), "");
  EXPECT_EQ(value, 4096u);
  EXPECT_EQ(parse_bytes("512MiB", value), "");
  EXPECT_EQ(value, UINT64_C(512) << 20);
  EXPECT_EQ(parse_bytes("8 G", value), "");
  EXPECT_EQ(value, UINT64_C(8) << 30);
  EXPECT_EQ(parse_bytes("3KB", value), "");
  EXPECT_EQ(value, 3000u);
  for (const char* text : {"", "G", "-1", "1.5G", "4 bytes", "99999999999999999999", "17179869184GiB", "1GiBs"}) {
    value = 77;
    EXPECT_NE(parse_bytes(text, value), "") << text;
    EXPECT_EQ(value, 77u) << "a refused text changes nothing";
  }
}

TEST(Value, CountsAreWholeAndNotNegative) {
  int32_t value = 5;
  for (const char* text : {"", "-1", "two", "3.0", "2147483648", " 1"}) EXPECT_NE(parse_count(text, value), "") << text;
  EXPECT_EQ(value, 5);
  EXPECT_EQ(parse_count("16", value), "");
  EXPECT_EQ(value, 16);
}

TEST(Value, FoldersAreAbsoluteAndEmptyOnesLeftOut) {
  std::vector<std::string> value;
  EXPECT_EQ(parse_folders("/a::/b c:", value), "");
  EXPECT_EQ(value, (std::vector<std::string>{"/a", "/b c"}));
  EXPECT_EQ(parse_folders("/a:plugins", value),
            "the folder 'plugins' is relative; write it from the root, beginning with /");
  EXPECT_NE(parse_folders(".", value), "");
}

TEST(Value, ChoicesAreNamedInTheReason) {
  uint8_t value = 9;
  EXPECT_EQ(parse_choice("compile", "native, decompose, compile, host", value), "");
  EXPECT_EQ(value, 2);
  EXPECT_EQ(parse_choice("gpu", "native, decompose", value), "it may be one of native, decompose");
}

TEST(ProviderName, TakesTheEndsOfEachRangeAndNothingBesideThem) {
  for (const char* name : {"a", "z", "0", "9", "_", "a09z_"}) EXPECT_TRUE(is_provider_name(name)) << name;
  for (const char* name : {"", "`", "{", "/", ":", "^", "A", "Z", "a-", "a ", "\xc3\xa4"}) {
    EXPECT_FALSE(is_provider_name(name)) << name;
  }
  EXPECT_TRUE(is_provider_name(std::string(31, 'a')));
  EXPECT_FALSE(is_provider_name(std::string(32, 'a')));
}

}  // namespace
}  // namespace tenon::loader
