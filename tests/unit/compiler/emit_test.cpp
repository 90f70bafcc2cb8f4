// Kernels in C against the interpreter.
#include <gtest/gtest.h>

#include "primitives/text/format.h"
#include "tests/unit/compiler/compiled.h"

namespace tenon::compiler {
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

}  // namespace
}  // namespace tenon::compiler
