// Cases that the Python tests here do not cover: strides, refusals, and faults as a caller sees them.
#include "primitives/reference/reference.h"

#include <gtest/gtest.h>

#include "primitives/descriptor/descriptor.h"
#include "tests/cases/case.h"

namespace tenon::reference {
namespace {

ep_primitive_desc parsed(std::string_view text) { return descriptor::parse_descriptor(text).value(); }

TEST(Reference, FollowsStridesAndLeavesGapsAlone) {
  const ep_primitive_desc desc = parsed("unary op=neg : dst f32[2,2]{3,1} src f32[2,2]{1,2}");
  const float src[] = {1, 2, 3, 4};
  float dst[] = {9, 9, 9, 9, 9};
  void* const operands[] = {dst, const_cast<float*>(src)};
  ASSERT_TRUE(run(desc, operands, nullptr, 0, nullptr).ok());
  const float want[] = {-1, -3, 9, -2, -4};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(dst[i], want[i]) << i;
}

TEST(Reference, ScalarOperandsAreRoundedToTheirType) {
  const ep_primitive_desc desc = parsed("binary op=add : dst f32[1]{1} src f32[1]{1} src_b f32 scalar");
  const float src[] = {0};
  float dst[] = {9};
  void* const operands[] = {dst, const_cast<float*>(src), nullptr};
  const ep_scalar scalars[] = {{}, cases::make_scalar(DType::f32, 0.1)};
  ASSERT_TRUE(run(desc, operands, scalars, 2, nullptr).ok());
  EXPECT_EQ(dst[0], 0.1F);
}

TEST(Reference, BakedScalarsWinOverLaunchScalars) {
  const ep_primitive_desc desc = parsed("fill scalar0=i32:7 : dst i32[2]{1}");
  int32_t dst[] = {1, 1};
  void* const operands[] = {dst};
  const ep_scalar scalars[] = {cases::make_scalar(DType::i32, 3)};
  ASSERT_TRUE(run(desc, operands, scalars, 1, nullptr).ok());
  EXPECT_EQ(dst[1], 7);
}

TEST(Reference, RefusesWhatItCannotRun) {
  float data[4] = {};
  void* const operands[] = {data, data};
  EXPECT_EQ(run(parsed("unary op=neg : dst f32[?]{1} src f32[?]{1}"), operands, nullptr, 0, nullptr).message(),
            "unary: the reference needs static dims.");
  EXPECT_FALSE(run(parsed("unary op=neg : dst f32[2]{1} src f32[3]{1}"), operands, nullptr, 0, nullptr).ok());
  void* const missing[] = {data, nullptr};
  EXPECT_EQ(run(parsed("unary op=neg : dst f32[2]{1} src f32[2]{1}"), missing, nullptr, 0, nullptr).message(),
            "unary: operand 'src' was not given.");
  EXPECT_EQ(run(parsed("binary op=add : dst f32[2]{1} src f32[2]{1} src_b f32 scalar"), operands, nullptr, 0, nullptr)
                .message(),
            "binary: operand 'src_b' was not given.");
}

TEST(Reference, TellsOfTheFirstFaultAndFinishes) {
  const ep_primitive_desc desc = parsed("binary op=div : dst i32[4]{1} src i32[4]{1} src_b i32[4]{1}");
  const int32_t x[] = {8, 5, INT32_MIN, 9};
  const int32_t y[] = {2, 0, -1, 3};
  int32_t dst[] = {1, 1, 1, 1};
  void* const operands[] = {dst, const_cast<int32_t*>(x), const_cast<int32_t*>(y)};
  ep_fault fault = {};
  const Status status = run(desc, operands, nullptr, 0, &fault);
  EXPECT_EQ(status.code(), Code::fault);
  EXPECT_EQ(status.message(), "binary: an integer is divided by zero (value 0, limit 0).");
  EXPECT_EQ(fault.code, EP_FAULT_DIVISION_BY_ZERO);
  EXPECT_EQ(fault.operand, 2);
  const int32_t want[] = {4, 0, INT32_MIN, 3};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(dst[i], want[i]);
}

TEST(Reference, PackedElementsShareTheirBytes) {
  const ep_primitive_desc desc = parsed("unary op=neg : dst i4[3]{1} src i4[3]{1}");
  const uint8_t src[] = {0x21, 0x08};  // 1, 2, -8
  uint8_t dst[] = {0, 0xf0};
  void* const operands[] = {dst, const_cast<uint8_t*>(src)};
  ASSERT_TRUE(run(desc, operands, nullptr, 0, nullptr).ok());
  EXPECT_EQ(dst[0], 0xef);
  EXPECT_EQ(dst[1], 0xf8);  // -8 wraps to itself; the neighbouring nibble does not change
}

}  // namespace
}  // namespace tenon::reference
