// SPIR-V of texts: checks and decorations.
#include "providers/vulkan/modules/spirv.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "providers/vulkan/kernels/modules.h"

namespace tenon::provider::vulkan {
namespace {

constexpr size_t header_words = 5;
constexpr uint32_t op_decorate = 71;
constexpr uint32_t no_contraction = 42;
// OpFNegate, OpFAdd, OpFSub, OpFMul, OpFDiv, OpFRem, OpFMod, OpVectorTimesScalar to OpDot.
const std::set<uint32_t> arithmetic = {127, 129, 131, 133, 136, 140, 141, 142, 143, 144, 145, 146, 147, 148};

std::string bytes_of(std::span<const uint32_t> words) {
  std::string bytes(words.size() * sizeof words[0], '\0');
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

struct Found {
  std::set<uint32_t> decorated;
  std::set<uint32_t> results;  // the results of operations on floats
  size_t last_decoration = 0, first_type = 0;
};

Found look_at(std::span<const uint32_t> words) {
  Found found;
  for (size_t at = header_words; at < words.size(); at += words[at] >> 16) {
    const uint32_t op = words[at] & 0xffff;
    if (op == op_decorate && words[at + 2] == no_contraction) {
      found.decorated.insert(words[at + 1]);
      found.last_decoration = at;
    }
    if (op >= 19 && op <= 39 && found.first_type == 0) found.first_type = at;
    if (arithmetic.count(op) != 0) found.results.insert(words[at + 2]);
  }
  return found;
}

TEST(Spirv, HasNoOperationThatADriverMayFuse) {
  for (const char* name : {"softmax_f32_narrow", "matmul_f32_words", "map2_f32_narrow"}) {
    const std::span<const uint32_t> words = module_words(name);
    ASSERT_FALSE(words.empty()) << name;
    const std::vector<uint32_t> made = without_contraction(words);
    const Found found = look_at(made);
    EXPECT_GT(found.results.size(), 3u) << name;
    for (const uint32_t result : found.results) EXPECT_EQ(found.decorated.count(result), 1u) << name << ", " << result;
    EXPECT_LT(found.last_decoration, found.first_type) << "decorations come before types";
    const Found before = look_at(words);
    size_t missing = 0;
    for (const uint32_t result : before.results) missing += before.decorated.count(result) == 0 ? 1 : 0;
    EXPECT_EQ(made.size(), words.size() + 3 * missing) << "nothing else, and nothing twice";
    EXPECT_EQ(without_contraction(made), made);
    EXPECT_FALSE(spirv_words(bytes_of(made)).empty());
  }
}

TEST(Spirv, IsRefusedWhereItsInstructionsDoNotEndWithIt) {
  const std::span<const uint32_t> words = module_words("softmax_f32_narrow");
  const std::string whole = bytes_of(words);
  EXPECT_EQ(spirv_words(whole).size(), words.size());
  EXPECT_TRUE(spirv_words("").empty());
  EXPECT_TRUE(spirv_words("junk").empty());
  EXPECT_TRUE(spirv_words(whole.substr(0, whole.size() - 2)).empty());
  EXPECT_TRUE(spirv_words(whole.substr(4)).empty()) << "no magic number";
  std::vector<uint32_t> wrong(words.begin(), words.end());
  wrong[header_words] &= 0xffff;
  EXPECT_TRUE(spirv_words(bytes_of(wrong)).empty()) << "an instruction of no words";
  wrong[header_words] |= 0x7fff0000;
  wrong.resize(100);
  EXPECT_TRUE(spirv_words(bytes_of(wrong)).empty()) << "an instruction beyond the end";
}

}  // namespace
}  // namespace tenon::provider::vulkan
