// The functions of the prelude in C against those of primitives/reference, over dense samples and at the edges, within
// the bounds that accuracy.def has for tier full.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "primitives/dtype/convert.h"
#include "primitives/reference/scalar.h"
#include "primitives/table/table.h"
#include "primitives/text/format.h"
#include "tests/cases/range.h"
#include "tests/unit/codegen/compiled.h"

namespace tenon::codegen {
namespace {

// Arguments: the edges, and values that grow by equal factors, of either sign.
template <class T>
std::vector<T> samples() {
  std::vector<T> result;
  for (const double edge : {0.0,  0.5,  0.625, 0.921875, 1.0,  1.5,   2.0,   2.5,   3.5,       4.0,       6.0, 10.0,
                            20.0, 86.0, 87.5,  88.7,     89.0, 103.0, 104.0, 200.0, 8388607.5, 8388608.0, 1e30}) {
    result.push_back(static_cast<T>(edge));
    result.push_back(static_cast<T>(-edge));
  }
  for (const T edge : {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN(),
                       std::numeric_limits<T>::denorm_min(), std::numeric_limits<T>::min()}) {
    result.push_back(edge);
    result.push_back(-edge);
  }
  for (double x = 1e-12; x < 1e5; x *= 1.0073) {
    result.push_back(static_cast<T>(x));
    result.push_back(static_cast<T>(-x));
  }
  while (result.size() % 16 != 0) result.push_back(T{1});
  return result;
}

// The distance of `have` from `want`, in units of the last place of T.
template <class T>
double distance(double want, T have) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(want) || std::isnan(have)) return std::isnan(want) && std::isnan(have) ? 0 : 1e30;
  if (std::isinf(rounded) || std::isinf(have)) return rounded == have ? 0 : 1e30;
  const int exponent = std::max(std::ilogb(want == 0 ? 1e-300 : want), std::numeric_limits<T>::min_exponent - 1);
  return std::abs(want - static_cast<double>(have)) / std::ldexp(1.0, exponent - std::numeric_limits<T>::digits + 1);
}

struct Bound {
  std::string_view name;
  double ulps;
  double epsilons = 0;  // an error of this many epsilons is accepted too
};

// The functions of one float argument, and some that are exact or one division.
std::vector<Bound> bounds_of_functions() {
  std::vector<Bound> bounds = {{"floor", 0}, {"ceil", 0}, {"trunc", 0}, {"round", 0},       {"neg", 0},
                               {"abs", 0},   {"sign", 0}, {"relu", 0},  {"reciprocal", 0.5}};
  for (const cases::FloatFunction& function : cases::float_functions()) {
    if (table::scalar_row(1, function.name) == nullptr) continue;
    bounds.push_back({function.name, cases::accuracy_row(function.name).full, function.near_roots});
  }
  return bounds;
}

template <class T>
void expect_bounds(const char* dtype) {
  const std::vector<Bound> bounds = bounds_of_functions();
  std::vector<T> x = samples<T>();
  std::string text = fmt::format("kernel functions\naxis i 1\naxis j {0}\nin x {1} {0}\n", x.size(), dtype);
  for (const Bound& bound : bounds) text += fmt::format("out y_{} {} {}\n", bound.name, dtype, x.size());
  for (const Bound& bound : bounds) text += fmt::format("s_{0} = store y_{0}[j] at i j: {0}(x[j])\n", bound.name);
  text += "loops\n  items i\n    vector j\n";
  for (const Bound& bound : bounds) text += fmt::format("      s_{}\n", bound.name);
  const Result<KernelText> made = emit_c(parsed(text));
  ASSERT_TRUE(made.ok()) << made.status().message();
  const Compiled compiled(made.value());
  ASSERT_TRUE(compiled.ok());
  std::vector<std::vector<T>> results(bounds.size(), std::vector<T>(x.size(), T{77}));
  std::vector<void*> buffers{x.data()};
  for (std::vector<T>& result : results) buffers.push_back(result.data());
  compiled.run(buffers, {}, 1, 1);
  for (size_t b = 0; b < bounds.size(); ++b) {
    const int32_t op = table::scalar_row(1, bounds[b].name)->id;
    double worst = 0;
    double at = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = reference::unary<double>(op, static_cast<double>(x[i]), 0, 0);
      const double error = std::abs(want - static_cast<double>(results[b][i]));
      const double epsilon = static_cast<double>(std::numeric_limits<T>::epsilon());
      const double off = error <= bounds[b].epsilons * epsilon ? 0 : distance<T>(want, results[b][i]);
      if (off > worst) at = static_cast<double>(x[i]);
      worst = std::max(worst, off);
    }
    EXPECT_LE(worst, bounds[b].ulps) << dtype << " " << bounds[b].name << " of " << at;
  }
}

TEST(PreludeC, FunctionsOfF32KeepTheirBounds) { expect_bounds<float>("f32"); }

TEST(PreludeC, FunctionsOfF64KeepTheirBounds) { expect_bounds<double>("f64"); }

// pow and fmod for a grid of numbers of either sign and all sizes, and at their edges.
template <class T>
void expect_pairs(const char* dtype) {
  const T inf = std::numeric_limits<T>::infinity();
  std::vector<T> numbers{0,
                         1,
                         2,
                         3,
                         T(0.5),
                         T(2.5),
                         10,
                         T(1e-3),
                         T(33.25),
                         T(1e6),
                         T(1e15),
                         T(1e30),
                         T(1e-30),
                         T(0.99),
                         T(1.01),
                         T(1e-38),
                         std::numeric_limits<T>::denorm_min(),
                         std::numeric_limits<T>::max(),
                         inf,
                         std::numeric_limits<T>::quiet_NaN()};
  const size_t half = numbers.size();
  for (size_t i = 0; i < half; ++i) numbers.push_back(-numbers[i]);
  std::vector<T> x, z;
  for (const T a : numbers) {
    for (const T b : numbers) {
      x.push_back(a);
      z.push_back(b);
    }
  }
  for (double a = 1e-3; a < 1e3; a *= 1.37) {
    for (double b = 1e-2; b < 60; b *= 1.53) {
      x.push_back(static_cast<T>(a));
      z.push_back(static_cast<T>(b));
      x.push_back(static_cast<T>(a));
      z.push_back(static_cast<T>(-b));
    }
  }
  const std::string text = fmt::format(
      "kernel pairs\naxis i 1\naxis j {0}\nin x {1} {0}\nin z {1} {0}\nout p {1} {0}\nout f {1} {0}\n"
      "s = store p[j] at i j: pow(x[j], z[j])\nt = store f[j] at i j: fmod(x[j], z[j])\n"
      "loops\n  items i\n    vector j\n      s\n      t\n",
      x.size(), dtype);
  const Compiled compiled(value_or_throw(emit_c(parsed(text))));
  ASSERT_TRUE(compiled.ok());
  std::vector<T> powers(x.size()), rests(x.size());
  compiled.run({x.data(), z.data(), powers.data(), rests.data()}, {}, 1, 1);
  for (size_t i = 0; i < x.size(); ++i) {
    const double a = static_cast<double>(x[i]), b = static_cast<double>(z[i]);
    EXPECT_LE(distance<T>(std::pow(a, b), powers[i]), 16) << dtype << " pow(" << a << ", " << b << ") is " << powers[i];
    EXPECT_EQ(distance<T>(std::fmod(a, b), rests[i]), 0) << dtype << " fmod(" << a << ", " << b << ") is " << rests[i];
  }
}

TEST(PreludeC, PowersAndRestsOfF32) { expect_pairs<float>("f32"); }

TEST(PreludeC, PowersAndRestsOfF64) { expect_pairs<double>("f64"); }

// Signs of zeros, which a distance ignores.
TEST(PreludeC, OddFunctionsKeepTheSignOfAZero) {
  for (const char* dtype : {"f32", "f64"}) {
    for (const char* name : {"sin", "tan", "asin", "atan", "sinh", "asinh", "atanh", "tanh", "erf", "expm1", "log1p"}) {
      const std::string text = fmt::format(
          "kernel zeros\naxis i 1\naxis j 16\nin x {0} 16\nout y {0} 16\ns = store y[j] at i j: {1}(x[j])\n"
          "loops\n  items i\n    vector j\n      s\n",
          dtype, name);
      const Compiled compiled(value_or_throw(emit_c(parsed(text))));
      ASSERT_TRUE(compiled.ok());
      const bool is_f64 = std::string_view(dtype) == "f64";
      std::vector<double> x(16, -0.0), y(16, 7);
      std::vector<float> narrow_x(16, -0.0F), narrow_y(16, 7);
      compiled.run(
          is_f64 ? std::vector<void*>{x.data(), y.data()} : std::vector<void*>{narrow_x.data(), narrow_y.data()}, {}, 1,
          1);
      const double result = is_f64 ? y[0] : narrow_y[0];
      EXPECT_TRUE(result == 0 && std::signbit(result)) << dtype << " " << name << " gives " << result;
    }
  }
}

// Every function of two arguments on some integers and floats, and casts among all dtypes.
TEST(PreludeC, PairsOfNumbers) {
  for (const std::string& dtype : {std::string("i8"), std::string("i64"), std::string("f32")}) {
    const DType type = *dtype_from_name(dtype);
    std::string text = fmt::format("kernel pairs\naxis i 1\naxis j 96\nin x {0} 96\nin z {0} 96\n", dtype);
    std::string stages;
    std::string loops = "loops\n  items i\n    vector j\n";
    for (const table::ScalarRow& row : table::binary_rows()) {
      if (!table::in_domain(row.domain, type) || row.name == "lcm") continue;
      text += fmt::format("out y_{} {} 96\n", row.name, dtype_name(table::result_dtype(row, type)));
      stages += fmt::format("s_{0} = store y_{0}[j] at i j: {0}(x[j], z[j])\n", row.name);
      loops += fmt::format("      s_{}\n", row.name);
    }
    expect_compiles(parsed(text + stages + loops), {{}}, 16, is_floating(type) ? 1e-6 : 0);
  }
}

// Numbers halfway between two numbers of the narrow type, and their neighbours, for every exponent.
TEST(PreludeC, RoundsToNarrowTypesOnceAndToEven) {
  std::vector<float> x;
  for (uint32_t exponent = 0; exponent < 256; ++exponent) {
    for (const uint32_t mantissa : {0x0U, 0x1000U, 0x3000U, 0x8000U, 0x18000U, 0x7ff000U, 0x7f8000U, 0x400000U}) {
      for (const uint32_t off : {0U, 1U, 0x7fffffU}) {
        for (const uint32_t sign : {0U, 0x80000000U}) {
          x.push_back(std::bit_cast<float>(sign | exponent << 23 | ((mantissa + off) & 0x7fffffU)));
        }
      }
    }
  }
  const std::string text = fmt::format(
      "kernel narrow\naxis i 1\naxis j {0}\nin x f32 {0}\nout y f16 {0}\nout z bf16 {0}\n"
      "s = store y[j] at i j: f16(x[j])\nt = store z[j] at i j: bf16(x[j])\n"
      "loops\n  items i\n    vector j\n      s\n      t\n",
      x.size());
  const Compiled compiled(value_or_throw(emit_c(parsed(text))));
  ASSERT_TRUE(compiled.ok());
  std::vector<uint16_t> y(x.size(), 0x7777);
  std::vector<uint16_t> z(x.size(), 0x7777);
  compiled.run({x.data(), y.data(), z.data()}, {}, 1, 1);
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) {  // NaN stays NaN; its bits are not specified
      ASSERT_TRUE(std::isnan(f16_to_f32(y[i])) && std::isnan(bf16_to_f32(z[i]))) << i;
      continue;
    }
    ASSERT_EQ(y[i], f32_to_f16(x[i])) << x[i];
    ASSERT_EQ(z[i], f32_to_bf16(x[i])) << x[i];
  }
}

TEST(PreludeC, CastsAmongAllDtypes) {
  const std::vector<std::string> all = {"bool", "i8",  "i16", "i32",  "i64", "u8", "u16",
                                        "u32",  "u64", "f16", "bf16", "f32", "f64"};
  std::string text = "kernel casts\naxis i 1\naxis j 48\n";
  std::string stages;
  std::string loops = "loops\n  items i\n    vector j\n";
  for (const std::string& from : all) text += fmt::format("in x_{0} {0} 48\n", from);
  for (const std::string& from : all) {
    for (const std::string& to : all) {
      if (from == to) continue;
      text += fmt::format("out y_{0}_{1} {1} 48\n", from, to);
      stages += fmt::format("s_{0}_{1} = store y_{0}_{1}[j] at i j: {1}(x_{0}[j])\n", from, to);
      loops += fmt::format("      s_{}_{}\n", from, to);
    }
  }
  expect_compiles(parsed(text + stages + loops), {{}}, 0, 0);
}

}  // namespace
}  // namespace tenon::codegen
