// The SIMD dialect of the prelude on every dispatch target, compared with the C library in double: within the bounds of
// scalar_ops.def over dense samples, and exact at the edges. On doubles it is compared with the C library in long
// double.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

// A scalar function that is one function of the prelude, the sampled interval, and the bound in units in the last
// place.
struct Function {
  const char* name;
  int32_t op;
  double (*exact)(double);
  double low, high;
  double ulps;
};

const Function functions[] = {
    {"exp", EP_UNARY_exp, std::exp, -104, 89, 4},
    {"expm1", EP_UNARY_expm1, std::expm1, -30, 89, 4},
    {"log", EP_UNARY_log, std::log, 0, 1e38, 4},
    {"log1p", EP_UNARY_log1p, std::log1p, -1, 1e30, 4},
    {"log2", EP_UNARY_log2, std::log2, 0, 1e38, 4},
    {"log10", EP_UNARY_log10, std::log10, 0, 1e38, 4},
    {"sin", EP_UNARY_sin, std::sin, -1e5, 1e5, 4},
    {"cos", EP_UNARY_cos, std::cos, -1e5, 1e5, 4},
    {"tan", EP_UNARY_tan, std::tan, -1e5, 1e5, 4},
    {"asin", EP_UNARY_asin, std::asin, -1, 1, 4},
    {"acos", EP_UNARY_acos, std::acos, -1, 1, 4},
    {"atan", EP_UNARY_atan, std::atan, -1e6, 1e6, 4},
    {"sinh", EP_UNARY_sinh, std::sinh, -89, 89, 4},
    {"cosh", EP_UNARY_cosh, std::cosh, -89, 89, 4},
    {"tanh", EP_UNARY_tanh, std::tanh, -20, 20, 4},
    {"asinh", EP_UNARY_asinh, std::asinh, -1e30, 1e30, 4},
    {"acosh", EP_UNARY_acosh, std::acosh, 1, 1e30, 4},
    {"atanh", EP_UNARY_atanh, std::atanh, -1, 1, 4},
    {"erfc", EP_UNARY_erfc, std::erfc, -5, 9, 23},
    {"lgamma", EP_UNARY_lgamma, std::lgamma, -0.9, 1e30, 8},
    {"exp2", EP_UNARY_exp2, std::exp2, -152, 129, 4},
    {"erf", EP_UNARY_erf, std::erf, -5, 5, 4},
    {"sqrt", EP_UNARY_sqrt, std::sqrt, 0, 1e38, 0.5},
    {"floor", EP_UNARY_floor, std::floor, -1e7, 1e7, 0},
    {"ceil", EP_UNARY_ceil, std::ceil, -1e7, 1e7, 0},
    {"trunc", EP_UNARY_trunc, std::trunc, -1e7, 1e7, 0},
    {"round", EP_UNARY_round, std::nearbyint, -1e7, 1e7, 0},
};

// The distance of `actual` from the exact value, in units in the last place of f32.
double ulps_off(float actual, double exact) {
  if (std::isnan(exact)) return std::isnan(actual) ? 0 : INFINITY;
  const auto nearest = static_cast<float>(exact);
  if (std::isinf(nearest) || std::isinf(actual)) return nearest == actual ? 0 : INFINITY;
  const float magnitude = std::fmax(std::fabs(nearest), std::numeric_limits<float>::min());
  const double unit = static_cast<double>(std::nextafter(magnitude, INFINITY)) - static_cast<double>(magnitude);
  return std::fabs(static_cast<double>(actual) - exact) / unit;
}

// Floats of every magnitude in the interval: evenly by their bits, and evenly by value.
std::vector<float> samples(const Function& function) {
  std::vector<float> values;
  for (uint32_t bits = 1; bits < 0x7f800000U; bits += 26881) {
    for (float sign : {1.0f, -1.0f}) {
      const float value = sign * std::bit_cast<float>(bits);
      if (value >= function.low && value <= function.high) values.push_back(value);
    }
  }
  for (int i = 0; i <= 60000; ++i) {
    values.push_back(static_cast<float>(function.low + (function.high - function.low) * i / 60000));
    values.push_back(static_cast<float>(std::fmax(function.low, -8) +
                                        (std::fmin(function.high, 8) - std::fmax(function.low, -8)) * i / 60000));
  }
  return values;
}

std::vector<float> run_row(OpenProvider& provider, int32_t op, std::vector<float> in) {
  const auto n = static_cast<int64_t>(in.size());
  ep_primitive_desc desc =
      descriptor(EP_PRIMITIVE_unary, {dense(EP_ROLE_DST, EP_DTYPE_f32, {n}), dense(EP_ROLE_SRC, EP_DTYPE_f32, {n})});
  desc.attributes.unary.op = op;
  std::vector<float> out(in.size(), -77.0f);
  EXPECT_EQ(run_once(provider, desc, {out.data(), in.data()}).status, EP_STATUS_OK) << provider.host.sentence();
  return out;
}

class Prelude : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    provider_ = open_on_target(GetParam());
    if (provider_ == nullptr) GTEST_SKIP() << "this processor has no " << GetParam();
  }
  std::unique_ptr<OpenProvider> provider_;
};

TEST_P(Prelude, StaysWithinItsBounds) {
  for (const Function& function : functions) {
    const std::vector<float> in = samples(function);
    const std::vector<float> out = run_row(*provider_, function.op, in);
    double worst = 0;
    size_t where = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      const double off = ulps_off(out[i], function.exact(static_cast<double>(in[i])));
      if (off > worst) {
        worst = off;
        where = i;
      }
    }
    EXPECT_LE(worst, function.ulps + 1e-6) << function.name << "(" << in[where] << ") gave " << out[where] << ", exact "
                                           << function.exact(static_cast<double>(in[where]));
    RecordProperty(function.name, std::to_string(worst));
  }
}

TEST_P(Prelude, KeepsNaNAndTheEdges) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> in = {NAN, infinity, -infinity, 0.0f, -0.0f, 1.0f, -1.0f, 1e-45f, -1e-45f, 3e38f, -3e38f};
  for (const Function& function : functions) {
    const std::vector<float> out = run_row(*provider_, function.op, in);
    for (size_t i = 0; i < in.size(); ++i) {
      const bool far = std::fabs(in[i]) > 1e30f && std::isfinite(in[i]);
      const bool periodic = function.op == EP_UNARY_sin || function.op == EP_UNARY_cos || function.op == EP_UNARY_tan;
      if (far && periodic) continue;  // no bound so far out
      const double exact = function.exact(static_cast<double>(in[i]));
      EXPECT_LE(ulps_off(out[i], exact), function.ulps) << function.name << "(" << in[i] << ") gave " << out[i];
      if (exact != 0) continue;
      EXPECT_EQ(std::signbit(out[i]), std::signbit(exact)) << function.name << "(" << in[i] << ")";
    }
  }
}

// The same on doubles; of lgamma, whose error near its roots is absolute, a magnitude below 1 counts as 1.
struct WideFunction {
  const char* name;
  int32_t op;
  long double (*exact)(long double);
  double low, high;
  double ulps;
  bool absolute = false;
};

const WideFunction wide_functions[] = {
    {"exp", EP_UNARY_exp, std::exp, -746, 710, 4},
    {"exp2", EP_UNARY_exp2, std::exp2, -1080, 1025, 4},
    {"expm1", EP_UNARY_expm1, std::expm1, -50, 710, 4},
    {"log", EP_UNARY_log, std::log, 0, 1e300, 4},
    {"log1p", EP_UNARY_log1p, std::log1p, -1, 1e300, 4},
    {"log2", EP_UNARY_log2, std::log2, 0, 1e300, 4},
    {"log10", EP_UNARY_log10, std::log10, 0, 1e300, 4},
    {"sin", EP_UNARY_sin, std::sin, -1e5, 1e5, 4},
    {"cos", EP_UNARY_cos, std::cos, -1e5, 1e5, 4},
    {"tan", EP_UNARY_tan, std::tan, -1e5, 1e5, 4},
    {"asin", EP_UNARY_asin, std::asin, -1, 1, 4},
    {"acos", EP_UNARY_acos, std::acos, -1, 1, 4},
    {"atan", EP_UNARY_atan, std::atan, -1e6, 1e6, 4},
    {"sinh", EP_UNARY_sinh, std::sinh, -711, 711, 4},
    {"cosh", EP_UNARY_cosh, std::cosh, -711, 711, 4},
    {"tanh", EP_UNARY_tanh, std::tanh, -30, 30, 4},
    {"asinh", EP_UNARY_asinh, std::asinh, -1e300, 1e300, 4},
    {"acosh", EP_UNARY_acosh, std::acosh, 1, 1e300, 4},
    {"atanh", EP_UNARY_atanh, std::atanh, -1, 1, 4},
    {"erf", EP_UNARY_erf, std::erf, -7, 7, 4},
    {"erfc", EP_UNARY_erfc, std::erfc, -6, 26, 23},
    {"floor", EP_UNARY_floor, std::floor, -1e16, 1e16, 0},
    {"trunc", EP_UNARY_trunc, std::trunc, -1e16, 1e16, 0},
    {"round", EP_UNARY_round, std::nearbyint, -1e16, 1e16, 0},
    {"lgamma", EP_UNARY_lgamma, std::lgamma, -6, 1e300, 64, true},
};

double wide_ulps_off(double actual, long double exact, bool absolute) {
  const auto nearest = static_cast<double>(exact);
  if (std::isnan(nearest)) return std::isnan(actual) ? 0 : INFINITY;
  if (std::isinf(nearest) || std::isinf(actual)) return nearest == actual ? 0 : INFINITY;
  const double least = absolute ? 1.0 : std::numeric_limits<double>::min();
  const double magnitude = std::fmax(std::fabs(nearest), least);
  const double unit = std::nextafter(magnitude, INFINITY) - magnitude;
  return static_cast<double>(std::fabs(static_cast<long double>(actual) - exact) / static_cast<long double>(unit));
}

std::vector<double> wide_samples(const WideFunction& function) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> values = {NAN, infinity, -infinity, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 5e-324, -5e-324};
  const auto add = [&](double value) {
    if (value >= function.low && value <= function.high) values.push_back(value);
  };
  for (uint64_t bits = 1; bits < 0x7ff0000000000000ULL; bits += 0x1f3a5c7e9b21dULL) {
    add(std::bit_cast<double>(bits));
    add(-std::bit_cast<double>(bits));
  }
  const double low = std::fmax(function.low, -8), high = std::fmin(function.high, 8);
  const double first = std::fmax(function.low, -1e5), last = std::fmin(function.high, 1e5);
  for (int i = 0; i <= 40000; ++i) {
    add(low + (high - low) * i / 40000);
    add(first + (last - first) * i / 40000);
  }
  return values;
}

TEST_P(Prelude, StaysWithinItsBoundsOnDoubles) {
  for (const WideFunction& function : wide_functions) {
    const std::vector<double> in = wide_samples(function);
    const auto n = static_cast<int64_t>(in.size());
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_unary, {dense(EP_ROLE_DST, EP_DTYPE_f64, {n}), dense(EP_ROLE_SRC, EP_DTYPE_f64, {n})});
    desc.attributes.unary.op = function.op;
    std::vector<double> out(in.size(), -77.0), source = in;
    ASSERT_EQ(run_once(*provider_, desc, {out.data(), source.data()}).status, EP_STATUS_OK);
    double worst = 0;
    size_t where = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      const long double exact = function.exact(static_cast<long double>(in[i]));
      const double off = wide_ulps_off(out[i], exact, function.absolute);
      if (off > worst) {
        worst = off;
        where = i;
      }
      if (exact != 0) continue;
      EXPECT_EQ(std::signbit(out[i]), std::signbit(exact)) << function.name << "(" << in[i] << ")";
    }
    EXPECT_LE(worst, function.ulps + 1e-6) << function.name << "(" << in[where] << ") gave " << out[where];
  }
}

// The power and the remainder of doubles, against the C library in long double.
TEST_P(Prelude, PowersAndRemaindersOfDoubles) {
  std::vector<double> x, y;
  for (int i = 0; i < 20011; ++i) {
    x.push_back(std::exp2((i * 7919 % 20011) / 600.0 - 16) * (i % 5 == 0 ? -1 : 1));
    y.push_back(i % 3 == 0 ? i % 41 - 20 : (i * 104729 % 20011) / 700.0 - 14);
  }
  const double special[] = {0.0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 5e-324, 1e308, 2, -3, 0.5};
  for (double a : special) {
    for (double b : special) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  const auto n = static_cast<int64_t>(x.size());
  const struct {
    int32_t op;
    long double (*exact)(long double, long double);
    double ulps;
  } rows[] = {{EP_BINARY_pow, std::pow, 16}, {EP_BINARY_fmod, std::fmod, 0}};
  for (const auto& row : rows) {
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_binary, {dense(EP_ROLE_DST, EP_DTYPE_f64, {n}), dense(EP_ROLE_SRC, EP_DTYPE_f64, {n}),
                                         dense(EP_ROLE_SRC_B, EP_DTYPE_f64, {n})});
    desc.attributes.binary.op = row.op;
    std::vector<double> out(x.size(), -77.0);
    ASSERT_EQ(run_once(*provider_, desc, {out.data(), x.data(), y.data()}).status, EP_STATUS_OK);
    for (size_t i = 0; i < x.size(); ++i) {
      const long double exact = row.exact(static_cast<long double>(x[i]), static_cast<long double>(y[i]));
      EXPECT_LE(wide_ulps_off(out[i], exact, false), row.ulps) << row.op << " of " << x[i] << ", " << y[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Target, Prelude, testing::Values("baseline", "avx2", "avx3"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
