// The SIMD dialect of the prelude on every dispatch target, compared with the C library in long double: within the
// bounds of scalar_ops.def over dense samples, and exact at the edges.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

// The sampled interval, the bound in units in the last place, and the magnitude that smaller values count as.
struct Bound {
  double low, high;
  double ulps;
  double least = 0;
};

// A scalar function that is a single function of the prelude. The error of lgamma near its roots is absolute.
struct Function {
  const char* name;
  int32_t op;
  long double (*exact)(long double);
  Bound f32, f64;

  template <class T>
  const Bound& bound() const {
    if constexpr (std::is_same_v<T, float>)
      return f32;
    else
      return f64;
  }
};

const Function functions[] = {
    {"exp", EP_UNARY_exp, std::exp, {-104, 89, 4}, {-746, 710, 4}},
    {"expm1", EP_UNARY_expm1, std::expm1, {-30, 89, 4}, {-50, 710, 4}},
    {"log", EP_UNARY_log, std::log, {0, 1e38, 4}, {0, 1e300, 4}},
    {"log1p", EP_UNARY_log1p, std::log1p, {-1, 1e30, 4}, {-1, 1e300, 4}},
    {"log2", EP_UNARY_log2, std::log2, {0, 1e38, 4}, {0, 1e300, 4}},
    {"log10", EP_UNARY_log10, std::log10, {0, 1e38, 4}, {0, 1e300, 4}},
    {"sin", EP_UNARY_sin, std::sin, {-1e5, 1e5, 4}, {-1e5, 1e5, 4}},
    {"cos", EP_UNARY_cos, std::cos, {-1e5, 1e5, 4}, {-1e5, 1e5, 4}},
    {"tan", EP_UNARY_tan, std::tan, {-1e5, 1e5, 4}, {-1e5, 1e5, 4}},
    {"asin", EP_UNARY_asin, std::asin, {-1, 1, 4}, {-1, 1, 4}},
    {"acos", EP_UNARY_acos, std::acos, {-1, 1, 4}, {-1, 1, 4}},
    {"atan", EP_UNARY_atan, std::atan, {-1e6, 1e6, 4}, {-1e6, 1e6, 4}},
    {"sinh", EP_UNARY_sinh, std::sinh, {-89, 89, 4}, {-711, 711, 4}},
    {"cosh", EP_UNARY_cosh, std::cosh, {-89, 89, 4}, {-711, 711, 4}},
    {"tanh", EP_UNARY_tanh, std::tanh, {-20, 20, 4}, {-30, 30, 4}},
    {"asinh", EP_UNARY_asinh, std::asinh, {-1e30, 1e30, 4}, {-1e300, 1e300, 4}},
    {"acosh", EP_UNARY_acosh, std::acosh, {1, 1e30, 4}, {1, 1e300, 4}},
    {"atanh", EP_UNARY_atanh, std::atanh, {-1, 1, 4}, {-1, 1, 4}},
    {"erfc", EP_UNARY_erfc, std::erfc, {-5, 9, 23}, {-6, 26, 23}},
    {"lgamma", EP_UNARY_lgamma, std::lgamma, {-0.9, 1e30, 8}, {-6, 1e300, 64, 1}},
    {"lgamma of negative numbers", EP_UNARY_lgamma, std::lgamma, {-9, 9, 64, 1}, {-9, 9, 64, 1}},
    {"exp2", EP_UNARY_exp2, std::exp2, {-152, 129, 4}, {-1080, 1025, 4}},
    {"erf", EP_UNARY_erf, std::erf, {-5, 5, 4}, {-7, 7, 4}},
    {"sqrt", EP_UNARY_sqrt, std::sqrt, {0, 1e38, 0.5}, {0, 1e300, 0.5}},
    {"floor", EP_UNARY_floor, std::floor, {-1e7, 1e7, 0}, {-1e16, 1e16, 0}},
    {"ceil", EP_UNARY_ceil, std::ceil, {-1e7, 1e7, 0}, {-1e16, 1e16, 0}},
    {"trunc", EP_UNARY_trunc, std::trunc, {-1e7, 1e7, 0}, {-1e16, 1e16, 0}},
    {"round", EP_UNARY_round, std::nearbyint, {-1e7, 1e7, 0}, {-1e16, 1e16, 0}},
};

// The distance of `actual` from the exact value, in units in the last place of T.
template <class T>
double ulps_off(T actual, long double exact, double least = 0) {
  const auto nearest = static_cast<T>(exact);
  if (std::isnan(nearest)) return std::isnan(actual) ? 0 : INFINITY;
  if (std::isinf(nearest) || std::isinf(actual)) return nearest == actual ? 0 : INFINITY;
  const T magnitude = std::fmax(std::fabs(nearest), std::fmax(static_cast<T>(least), std::numeric_limits<T>::min()));
  const T unit = std::nextafter(magnitude, std::numeric_limits<T>::infinity()) - magnitude;
  return static_cast<double>(std::fabs(static_cast<long double>(actual) - exact) / static_cast<long double>(unit));
}

// Values of every magnitude in the interval: spaced evenly by their bits, and evenly by value, near zero and farther
// out.
template <class T>
std::vector<T> samples(const Bound& bound) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const Bits step = sizeof(T) == 4 ? 26881 : static_cast<Bits>(0x1f3a5c7e9b21dULL);
  std::vector<T> values;
  const auto add = [&](T value) {
    if (static_cast<double>(value) >= bound.low && static_cast<double>(value) <= bound.high) values.push_back(value);
  };
  for (Bits bits = 1; bits < std::bit_cast<Bits>(std::numeric_limits<T>::infinity()); bits += step) {
    add(std::bit_cast<T>(bits));
    add(-std::bit_cast<T>(bits));
  }
  for (const double limit : {8.0, 1e7}) {
    const double low = std::fmax(bound.low, -limit), high = std::fmin(bound.high, limit);
    for (int i = 0; i <= 50000; ++i) add(static_cast<T>(low + (high - low) * i / 50000));
  }
  return values;
}

class Prelude : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    provider_ = open_on_target(GetParam());
    if (provider_ == nullptr) GTEST_SKIP() << "this processor has no " << GetParam();
  }

  template <class T>
  std::vector<T> run(const Function& function, std::vector<T> in) {
    const int32_t dtype = sizeof(T) == 4 ? EP_DTYPE_f32 : EP_DTYPE_f64;
    const auto n = static_cast<int64_t>(in.size());
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_unary, {dense(EP_ROLE_DST, dtype, {n}), dense(EP_ROLE_SRC, dtype, {n})});
    desc.attributes.unary.op = function.op;
    std::vector<T> out(in.size(), static_cast<T>(-77));
    EXPECT_EQ(run_once(*provider_, desc, {out.data(), in.data()}).status, EP_STATUS_OK) << provider_->host.sentence();
    return out;
  }

  // Expects that the bound holds for each element of `in`, and that a zero result has the right sign.
  template <class T>
  void check(const Function& function, const std::vector<T>& in) {
    const Bound& bound = function.bound<T>();
    const std::vector<T> out = run(function, in);
    double worst = 0;
    size_t where = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      const long double exact = function.exact(static_cast<long double>(in[i]));
      const double off = ulps_off(out[i], exact, bound.least);
      if (off > worst) {
        worst = off;
        where = i;
      }
      if (exact != 0) continue;
      EXPECT_EQ(std::signbit(out[i]), std::signbit(exact)) << function.name << "(" << in[i] << ")";
    }
    EXPECT_LE(worst, bound.ulps + 1e-6) << function.name << "(" << in[where] << ") gave " << out[where] << ", exact "
                                        << function.exact(static_cast<long double>(in[where]));
  }

  template <class T>
  void check_edges(const Function& function) {
    const T infinity = std::numeric_limits<T>::infinity(), least = std::numeric_limits<T>::denorm_min();
    std::vector<T> in = {static_cast<T>(NAN), infinity, -infinity, 0, 1, static_cast<T>(0.5), least};
    // The periodic functions have no bound for such large arguments.
    if (function.op != EP_UNARY_sin && function.op != EP_UNARY_cos && function.op != EP_UNARY_tan) {
      in.push_back(static_cast<T>(0.9) * std::numeric_limits<T>::max());
    }
    for (size_t i = 3, n = in.size(); i < n; ++i) in.push_back(-in[i]);
    check(function, in);
  }

  std::unique_ptr<OpenProvider> provider_;
};

TEST_P(Prelude, StaysWithinItsBounds) {
  for (const Function& function : functions) check(function, samples<float>(function.f32));
}

TEST_P(Prelude, StaysWithinItsBoundsOnDoubles) {
  for (const Function& function : functions) check(function, samples<double>(function.f64));
}

TEST_P(Prelude, KeepsNaNAndTheEdges) {
  for (const Function& function : functions) {
    check_edges<float>(function);
    check_edges<double>(function);
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
      EXPECT_LE(ulps_off(out[i], exact), row.ulps) << row.op << " of " << x[i] << ", " << y[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Target, Prelude, testing::Values("baseline", "avx2", "avx3"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

}  // namespace
}  // namespace tenon::provider
