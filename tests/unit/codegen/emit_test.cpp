// Kernels in C against the interpreter.
#include <gtest/gtest.h>

#include "primitives/text/format.h"
#include "tests/unit/codegen/compiled.h"

namespace tenon::codegen {
namespace {

constexpr int64_t kLengths[] = {1, 17, 64, 130, 768};

std::string rows(const std::string& name, int64_t length, const std::string& dtype) {
  return fmt::format("kernel {}\nsize n in [0, 65536]\naxis i n\naxis r {}\nin x {} {}*n\nin w {} {}\nout y {} {}*n\n",
                     name, length, dtype, length, dtype, length, dtype, length);
}

TEST(EmitC, RmsNorm) {
  for (const int64_t length : kLengths) {
    const std::string at = fmt::format("{}*i + r", length);
    expect_compiles(
        parsed(rows("rms_norm", length, "f32") +
               fmt::format("s = sum f32 at i over r: square(x[{}])\n"
                           "t = value f32 at i: rsqrt(add(div(s, {}:f32), 1e-06:f32))\n"
                           "u = store y[{}] at i r: mul(mul(x[{}], t), w[r])\n"
                           "loops\n  items i\n    vector r unroll 4\n      s\n    t\n    vector r unroll 4\n      u\n",
                           at, length, at, at)),
        {{0}, {1}, {5}}, 8, 0);
  }
}

TEST(EmitC, SoftmaxWithARowInLocalMemory) {
  for (const std::string& dtype : {std::string("f32"), std::string("f64"), std::string("f16"), std::string("bf16")}) {
    for (const int64_t length : {3, 50}) {
      const std::string at = fmt::format("{}*i + r", length);
      const bool is_f64 = dtype == "f64";
      const std::string number = is_f64 ? "f64" : "f32";
      const bool narrow = dtype.ends_with("16");
      const std::string x = narrow ? fmt::format("f32(x[{}])", at) : fmt::format("x[{}]", at);
      const std::string y = narrow ? fmt::format("{}(div(e, s))", dtype) : "div(e, s)";
      expect_compiles(parsed(rows("softmax", length, dtype) +
                             fmt::format("m = max {} at i over r: {}\n"
                                         "e = value {} in row at i r: exp(sub({}, m))\n"
                                         "s = sum {} at i over r: e\n"
                                         "u = store y[{}] at i r: {}\n"
                                         "loops\n  items i\n    vector r unroll 2\n      m\n    vector r unroll 2\n"
                                         "      e\n      s\n    vector r\n      u\n",
                                         number, x, number, x, number, at, y)),
                      {{1}, {4}}, narrow ? 1 : 16, 0);
    }
  }
}

// A value that is the same for all elements: a compiler could not know that no store changes it.
TEST(EmitC, WhatNoLoopChangesIsComputedOnce) {
  const Kernel kernel = parsed(
      "kernel scaled\nsize n in [0, 65536]\naxis i n\nin x f32 n\nin w f32 3\nout y f32 n\nout z f32 n\n"
      "v = value f32 inlined at i: sqrt(w[2])\n"
      "u = store y[i] at i: div(x[i], v)\n"
      "t = store z[i] at i: mul(x[0], add(v, sqrt(x[i])))\n"
      "loops\n  items i step 64\n    vector i unroll 2\n      u\n      t\n");
  const std::string text = value_or_throw(emit_c(kernel)).text;
  const size_t loops = text.rfind("for (int64_t item");
  EXPECT_LT(text.find("= op1_sqrt_f32("), loops);
  EXPECT_GT(text.find("b0 + 0"), loops);  // x may have no element
  expect_compiles(kernel, {{0}, {1}, {64}, {200}}, 4, 0);
}

// A store that bypasses the cache is slower if the line was just read: the caller decides by the addresses.
TEST(EmitC, StoresOverAnInputStayInTheCache) {
  const std::string text =
      value_or_throw(emit_c(parsed("kernel decay\naxis i 8388608\nin x f32 8388608\nout y f32 8388608\n"
                                   "u = store y[i] at i: mul(x[i], 0.5:f32)\n"
                                   "loops\n  items i step 4096\n    vector i\n      u\n")))
          .text;
  EXPECT_NE(text.find("> 16777216 && (const void*)b1 != (const void*)b0;"), std::string::npos) << text;
}

}  // namespace
}  // namespace tenon::codegen
