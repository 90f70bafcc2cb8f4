// Kernels as text, what the verifier refuses, and the interpreter against loops written by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/compiler/loop/interpret.h"
#include "core/compiler/loop/ir.h"

namespace tenon::compiler {
namespace {

constexpr const char* kRmsNorm =
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

constexpr const char* kLoops =
    "loops\n"
    "  items i\n"
    "    vector r unroll 4\n"
    "      s\n"
    "    t\n"
    "    vector r\n"
    "      u\n";

Kernel parsed(const std::string& text) {
  Result<Kernel> kernel = parse_kernel(text);
  EXPECT_TRUE(kernel.ok()) << kernel.status().message();
  return std::move(kernel).value();
}

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
  const std::string text = std::string(kRmsNorm) + kLoops;
  EXPECT_EQ(to_string(parsed(text)), text);
  EXPECT_EQ(to_string(parsed(kRmsNorm)), kRmsNorm);
}

TEST(LoopText, KeepsEveryPartOfTheIr) {
  const std::string text =
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
      "m = max f32 in row at i over j k: select_free_placeholder\n";
  const std::string body = with(text, "select_free_placeholder", "where(c[i], %1, -inf:f32)");
  const std::string stores =
      "o = store d[i] at i: bf16(clamp(m, hard_sigmoid(%1; 0.2, 0.5), nan:f32))\n"
      "q = store e[0]: b[7 if lt([n - 1], [n % 5 + min(n, 9)])]\n";
  EXPECT_EQ(to_string(parsed(body + stores)), body + stores);
}

TEST(LoopText, SaysWhatItExpected) {
  EXPECT_EQ(refusal(""), "A kernel is expected, but the text is empty.");
  EXPECT_EQ(refusal(with(kRmsNorm, "square(", "squares(")),
            "Line 8 of a kernel: 'squares' is no scalar function of 1 arguments.");
  EXPECT_EQ(refusal(with(kRmsNorm, "axis r 24", "axis r m")),
            "Line 4 of a kernel: at position 6 a size is expected: 'm' is no size and no axis of the kernel..");
}

TEST(LoopVerifier, RefusesWhatIsNotWellMade) {
  EXPECT_EQ(refusal(with(kRmsNorm, "u = store y[24*i + r] at i r", "u = store y[24*i + r + 1] at i r")), "");
}

TEST(LoopInterpreter, ComputesRmsNorm) {
  const size_t rows = 5;
  const std::vector<float> x = numbers(rows * 24, 1);
  const std::vector<float> w = numbers(24, 2);
  for (const std::string& text : {std::string(kRmsNorm), std::string(kRmsNorm) + kLoops}) {
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

}  // namespace
}  // namespace tenon::compiler
