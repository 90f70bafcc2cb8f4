// Kernels as text, refusals of the verifier, and the interpreter against hand-written loops.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/codegen/loop/interpret.h"
#include "core/codegen/loop/ir.h"
#include "primitives/text/format.h"
#include "tests/unit/codegen/compiled.h"

namespace tenon::codegen {
namespace {

const std::string kRmsNorm =
    "kernel rms_norm\n"
    "size n in [0, 65536]\n"
    "axis i n\n"
    "axis r 24\n"
    "in x f32 24*n\n"
    "in w f32 24\n"
    "out y f32 24*n\n"
    "s = sum f32 at i over r: square(x[24*i + r])\n"
    "t = value f32 at i: rsqrt(add(div(s, 24:f32), 1e-06:f32))\n"
    "u = store y[24*i + r] at i r: mul(mul(x[24*i + r], t), w[r])\n";

const std::string kLoops =
    "loops\n"
    "  items i\n"
    "    vector r unroll 4\n"
    "      s\n"
    "    t\n"
    "    vector r\n"
    "      u\n";

std::string refusal(const std::string& text) {
  const Result<Kernel> kernel = parse_kernel(text);
  EXPECT_FALSE(kernel.ok());
  return kernel.status().message();
}

// `text` with the first `from` replaced.
std::string with(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::vector<float> numbers(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(0.5F, 2.0F);
  std::vector<float> result(count);
  for (float& each : result) each = (random() % 2 == 0 ? -1 : 1) * draw(random);
  return result;
}

TEST(LoopText, ParsesBackToTheSameText) {
  const std::string text = kRmsNorm + kLoops;
  EXPECT_EQ(to_string(parsed(text)), text);
  EXPECT_EQ(to_string(parsed(kRmsNorm)), kRmsNorm);
}

TEST(LoopText, KeepsEveryPartOfTheIr) {
  const std::string body =
      "kernel parts\n"
      "size n in [1, 4096] multiple 16\n"
      "axis i n\n"
      "axis j 3\n"
      "axis k 5\n"
      "in a f16 n + 2\n"
      "in b i64 15*n\n"
      "in c bool n\n"
      "out d bf16 n\n"
      "out e i64 1\n"
      "%0 = f32(a[i + 1])\n"
      "v = value f32 inlined at i: add(%0, leaky_relu(%0; 0.25))\n"
      "%1 = mul(v, v)\n"
      "m = max f32 in row at i over j k: where(c[i], %1, -inf:f32)\n";
  const std::string stores =
      "o = store d[i] at i: bf16(clamp(m, hard_sigmoid(%1; 0.2, 0.5), nan:f32))\n"
      "q = store e[0]: b[7 if lt([n - 1], [n % 5 + min(n, 9)])]\n";
  EXPECT_EQ(to_string(parsed(body + stores)), body + stores);
}

TEST(LoopText, SaysWhatItExpected) {
  EXPECT_EQ(refusal(""), "A kernel is expected, but the text is empty.");
  EXPECT_EQ(refusal(with(kRmsNorm, "square(", "squares(")),
            "Line 8 of a kernel: 'squares' is not a scalar function of 1 arguments.");
  EXPECT_EQ(refusal(with(kRmsNorm, "axis r 24", "axis r m")),
            "Line 4 of a kernel: at position 6 a size is expected: 'm' is neither a size nor an axis of the kernel.");
}

TEST(LoopVerifier, RefusesWhatIsNotWellMade) {
  EXPECT_EQ(refusal(with(kRmsNorm, "w[r]", "w[r + 1]")),
            "Stage u reaches element r + 1 of buffer w, from 1 to 24, but the buffer has 24 elements.");
  EXPECT_EQ(refusal(with(kRmsNorm, "axis r 24", "axis x 24")),
            "Line 8 of a kernel: at position 23 there is no axis 'r' above this line.");
  EXPECT_EQ(refusal(with(kRmsNorm, "in w f32", "in x f32")),
            "Line 10 of a kernel: at position 56 there is no buffer 'w' above this line.");
  EXPECT_EQ(refusal(with(kRmsNorm, "in w f32", "in w f16")), "mul needs f16 as argument 1, but got f32.");
  EXPECT_EQ(refusal(with(kRmsNorm, "in w f32", "in w f8e4m3fn")),
            "Buffer w is of f8e4m3fn; a kernel has buffers of bool, integers from 8 bits on, f16, bf16, f32 and f64.");
  EXPECT_EQ(refusal(with(kRmsNorm, "at i: rsqrt", "at r: rsqrt")),
            "Stage t reads stage s, whose axis i it does not have.");
  EXPECT_EQ(refusal(with(kRmsNorm, "sum f32", "all f32")), "Stage s: all is not computed in f32; cast first.");
  EXPECT_EQ(refusal(with(kRmsNorm, "u = store y[24*i + r] at i r", "u = value f32 at i r")),
            "No stage stores into buffer y, which is an output.");
  EXPECT_EQ(refusal(with(kRmsNorm + kLoops, "    t\n", "")), "The loops run stage t 0 times; each runs once.");
  EXPECT_EQ(
      refusal(with(kRmsNorm + kLoops, "    vector r unroll 4\n      s\n    t\n", "    t\n    vector r\n      s\n")),
      "Stage t runs before stage s, which it reads.");
  EXPECT_EQ(refusal(with(kRmsNorm + kLoops, "    t\n", "      t\n")),
            "A loop over r encloses stage t, which has no such axis: the stage would run more than once.");
  EXPECT_EQ(refusal(with(kRmsNorm + kLoops, "items i", "serial i")),
            "The loops of kernel rms_norm must be one loop of items.");
}

TEST(LoopInterpreter, ComputesRmsNorm) {
  const size_t rows = 5;
  const std::vector<float> x = numbers(rows * 24, 1);
  const std::vector<float> w = numbers(24, 2);
  for (const std::string& text : {kRmsNorm, kRmsNorm + kLoops}) {
    const Kernel kernel = parsed(text);
    std::vector<float> y(rows * 24, NAN);
    const int64_t parameters[] = {rows};
    void* const buffers[] = {const_cast<float*>(x.data()), const_cast<float*>(w.data()), y.data()};
    const Status status = interpret(kernel, parameters, buffers);
    ASSERT_TRUE(status.ok()) << status.message();
    for (size_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (size_t r = 0; r < 24; ++r) sum += double{x[i * 24 + r]} * x[i * 24 + r];
      const double scale = 1 / std::sqrt(sum / 24 + 1e-6);
      for (size_t r = 0; r < 24; ++r) EXPECT_NEAR(y[i * 24 + r], x[i * 24 + r] * scale * w[r], 1e-6);
    }
  }
}

TEST(LoopInterpreter, TakesPositionsFromEitherEnd) {
  const std::string text =
      "kernel pick\naxis i 3\naxis r 5\nin x f32 15\nin k i64 3\nout y f32 3\n"
      "p = value i64 at i: position(k[i], [5], k)\n"
      "v = max f32 at i over r: where(eq([r], p), x[5*i + r], -inf:f32)\n"
      "s = store y[i] at i: v\n";
  const Kernel kernel = parsed(text);
  EXPECT_EQ(to_string(kernel), text);
  const std::vector<float> x = numbers(15, 1);
  std::vector<int64_t> at{-5, 4, -1};
  std::vector<float> y(3, 99);
  const std::vector<void*> buffers{const_cast<float*>(x.data()), at.data(), y.data()};
  ASSERT_TRUE(interpret(kernel, {}, buffers).ok());
  EXPECT_EQ(y, (std::vector<float>{x[0], x[9], x[14]}));
  for (const int64_t wrong : {5, -6}) {
    at[1] = wrong;
    const Status status = interpret(kernel, {}, buffers);
    EXPECT_EQ(status.message(), fmt::format("Element {} of buffer k is outside of [-5, 5).", wrong));
  }
  EXPECT_NE(refusal(with(text, "position(k[i], [5], k)", "position(x[i], [5], at)")), "");
}

}  // namespace
}  // namespace tenon::codegen
