// The SIMD dialect of the prelude on every dispatch target, compared with the C library in long double: within the
// bounds of accuracy.def over dense samples, and exact at the edges.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "primitives/table/table.h"
#include "tests/cases/range.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider {
namespace {

// A scalar function that is a single function of the prelude.
struct Function {
  std::string_view name;
  int32_t op;
  long double (*exact)(long double);
  double ulps, epsilons = 0;  // an error of this many epsilons is accepted too
  double low = -INFINITY, high = INFINITY;
  bool is_periodic = false;
};

std::vector<Function> all_functions() {
  std::vector<Function> result = {{"floor", EP_UNARY_floor, std::floor, 0},
                                  {"ceil", EP_UNARY_ceil, std::ceil, 0},
                                  {"trunc", EP_UNARY_trunc, std::trunc, 0},
                                  {"round", EP_UNARY_round, std::nearbyint, 0}};
  for (const cases::FloatFunction& each : cases::float_functions()) {
    const table::ScalarRow* row = table::scalar_row(1, each.name);
    if (row == nullptr) continue;
    result.push_back({each.name, row->id, each.exact, cases::accuracy_row(each.name).full, each.near_roots, each.first,
                      each.last, each.shape == cases::Shape::WAVE || each.shape == cases::Shape::POLES});
  }
  return result;
}

// The distance of `actual` from the exact value, in units in the last place of T.
template <class T>
double ulps_off(T actual, long double exact) {
  const auto nearest = static_cast<T>(exact);
  if (std::isnan(nearest)) return std::isnan(actual) ? 0 : INFINITY;
  if (std::isinf(nearest) || std::isinf(actual)) return nearest == actual ? 0 : INFINITY;
  const T magnitude = std::fmax(std::fabs(nearest), std::numeric_limits<T>::min());
  const T unit = std::nextafter(magnitude, std::numeric_limits<T>::infinity()) - magnitude;
  return static_cast<double>(std::fabs(static_cast<long double>(actual) - exact) / static_cast<long double>(unit));
}

// Values of every magnitude in the interval of the function: spaced evenly by their bits, and evenly by value, near
// zero and farther out.
template <class T>
std::vector<T> samples(const Function& function) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const Bits step = sizeof(T) == 4 ? 26881 : static_cast<Bits>(0x1f3a5c7e9b21dULL);
  std::vector<T> values;
  const auto add = [&](T value) {
    if (static_cast<double>(value) >= function.low && static_cast<double>(value) <= function.high)
      values.push_back(value);
  };
  for (Bits bits = 1; bits < std::bit_cast<Bits>(std::numeric_limits<T>::infinity()); bits += step) {
    add(std::bit_cast<T>(bits));
    add(-std::bit_cast<T>(bits));
  }
  for (const double limit : {8.0, 100.0, 750.0, 1e7}) {
    const double low = std::fmax(function.low, -limit), high = std::fmin(function.high, limit);
    for (int i = 0; i <= 50000; ++i) add(static_cast<T>(low + (high - low) * i / 50000));
  }
  return values;
}

class Prelude : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    provider_ = open_on_target(GetParam());
    if (provider_ == nullptr) GTEST_SKIP() << "this processor or build has no " << GetParam();
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
    const std::vector<T> out = run(function, in);
    double worst = 0;
    size_t where = 0;
    for (size_t i = 0; i < in.size(); ++i) {
      const long double exact = function.exact(static_cast<long double>(in[i]));
      const double off = ulps_off(out[i], exact);
      const double error = static_cast<double>(std::fabs(static_cast<long double>(out[i]) - exact));
      if (off > worst && !(error <= function.epsilons * static_cast<double>(std::numeric_limits<T>::epsilon()))) {
        worst = off;
        where = i;
      }
      if (exact != 0) continue;
      EXPECT_EQ(std::signbit(out[i]), std::signbit(exact)) << function.name << "(" << in[i] << ")";
    }
    EXPECT_LE(worst, function.ulps + 1e-6) << function.name << "(" << in[where] << ") gave " << out[where] << ", exact "
                                           << function.exact(static_cast<long double>(in[where]));
  }

  template <class T>
  void check_edges(const Function& function) {
    const T infinity = std::numeric_limits<T>::infinity(), least = std::numeric_limits<T>::denorm_min();
    std::vector<T> in = {static_cast<T>(NAN), infinity, -infinity, 0, 1, static_cast<T>(0.5), least};
    // The periodic functions have no bound for such large arguments.
    if (!function.is_periodic) in.push_back(static_cast<T>(0.9) * std::numeric_limits<T>::max());
    for (size_t i = 3, n = in.size(); i < n; ++i) in.push_back(-in[i]);
    check(function, in);
  }

  std::unique_ptr<OpenProvider> provider_;
};

TEST_P(Prelude, StaysWithinItsBounds) {
  for (const Function& function : all_functions()) check(function, samples<float>(function));
}

TEST_P(Prelude, StaysWithinItsBoundsOnDoubles) {
  for (const Function& function : all_functions()) check(function, samples<double>(function));
}

TEST_P(Prelude, KeepsNaNAndTheEdges) {
  for (const Function& function : all_functions()) {
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
