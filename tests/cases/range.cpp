#include "tests/cases/range.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "ep_api/ep_api.h"
#include "primitives/reference/prelude.h"
#include "primitives/table/table.h"

namespace tenon::cases {
namespace {

using Number = long double;
using table::Domain;

constexpr Number infinite = std::numeric_limits<Number>::infinity();
constexpr Number pi = 3.14159265358979323846L;

constexpr AccuracyRow rows[] = {
#define EP_ACCURACY(name, full, portable, per_x, absolute, portable_f64, relaxed, relaxed_absolute, inherited) \
  {#name, full, portable, per_x, absolute, portable_f64, relaxed, relaxed_absolute},
#include "ep_api/accuracy.def"
#undef EP_ACCURACY
};

Number greatest(const Level& level) {
  return level.wide ? Number(std::numeric_limits<double>::max()) : Number(std::numeric_limits<float>::max());
}
Number least_normal(const Level& level) {
  return level.wide ? Number(std::numeric_limits<double>::min()) : Number(std::numeric_limits<float>::min());
}
Number epsilon(const Level& level) {
  return level.wide ? Number(std::numeric_limits<double>::epsilon()) : Number(std::numeric_limits<float>::epsilon());
}

Range unknown(const Level& level) {
  constexpr Number nan = std::numeric_limits<Number>::quiet_NaN();
  return {level, nan, nan, nan};
}

Range hull(const Range& x, const Range& y, Number exact) {
  if (!x.known() || !y.known()) return unknown(x.level);
  return {x.level, std::min(x.low, y.low), exact, std::max(x.high, y.high)};
}

// The effect of the arithmetic on a result: it may overflow and, if the device flushes, become 0.
Range stored(Range x) {
  if (!x.known()) return x;
  if (x.high > greatest(x.level)) x.high = infinite;
  if (x.low < -greatest(x.level)) x.low = -infinite;
  if (x.level.flushes && x.low < least_normal(x.level) && x.high > -least_normal(x.level)) {
    x.low = std::min<Number>(x.low, 0);
    x.high = std::max<Number>(x.high, 0);
  }
  return x;
}

Number error_at(const Level& level, const Bound& bound, Number value) {
  if (std::isinf(value)) return 0;
  return std::max(bound.ulps * unit_at(value, level.wide), bound.epsilons * epsilon(level));
}

// Applies the error to a result: each end moves outward by the bound there.
Range with_error(const Range& x, const Bound& bound) {
  return stored({x.level, x.low - error_at(x.level, bound, x.low), x.exact, x.high + error_at(x.level, bound, x.high)});
}

#define TENON_EXACT_C(name) static_cast<Number (*)(Number)>(std::name)
#define TENON_EXACT_NONE(name) \
  [](Number x) { return static_cast<Number>(reference::prelude::ep_##name(static_cast<double>(x))); }
#define EP_FLOAT_FUNCTION(name, function, library, shape, first, last, least, near_roots) \
  constexpr FloatFunction function_##name = {                                             \
      #name, Shape::shape, first, last, least, near_roots, TENON_EXACT_##library(name)};
#include "ep_api/accuracy.def"
#undef EP_FLOAT_FUNCTION
#undef TENON_EXACT_C
#undef TENON_EXACT_NONE
constexpr FloatFunction functions[] = {
#define EP_FLOAT_FUNCTION(name, function, library, shape, first, last, least, near_roots) function_##name,
#include "ep_api/accuracy.def"
#undef EP_FLOAT_FUNCTION
};

// The row of one function. It is looked up once.
#define ROW(name)                                          \
  []() -> const AccuracyRow& {                             \
    static const AccuracyRow& found = accuracy_row(#name); \
    return found;                                          \
  }()

Number magnitude(const Range& x) { return std::max(std::fabs(x.low), std::fabs(x.high)); }

Bound bound_at(const AccuracyRow& row, const Range& x) {
  return bound_of(row, x.level, static_cast<double>(magnitude(x)));
}

// A non-decreasing function, on its domain from `first` to `last`.
template <class F>
Range rising(const Range& x, const AccuracyRow& row, const F& f, Number first = -infinite, Number last = infinite) {
  if (!x.known()) return x;
  const auto at = [&](Number value) { return f(std::clamp(value, first, last)); };
  return with_error({x.level, at(x.low), f(x.exact), at(x.high)}, bound_at(row, x));
}

// The range of the function itself and, on the tiers to which `inherited` applies, also the range of `inherited`.
Range widened(const Range& own, const Range& inherited) {
  const bool applies = own.level.tier != Tier::full && !(own.level.wide && own.level.tier == Tier::portable);
  return applies && inherited.known() && own.known() ? hull(own, inherited, own.exact) : own;
}

// --- the prelude on ranges ---

Range ep_neg(const Range& x) { return {x.level, -x.high, -x.exact, -x.low}; }

Range ep_abs(const Range& x) {
  if (!x.known() || x.low >= 0) return x;
  if (x.high <= 0) return ep_neg(x);
  return {x.level, 0, std::fabs(x.exact), magnitude(x)};
}

Range ep_add(const Range& x, const Range& y) {
  return with_error({x.level, x.low + y.low, x.exact + y.exact, x.high + y.high}, bound_at(ROW(add), x));
}
Range ep_sub(const Range& x, const Range& y) { return ep_add(x, ep_neg(y)); }

// The least and greatest of the products or quotients of the ends. NaN (0 * inf) makes the result unknown.
template <class F>
Range corners(const Range& x, const Range& y, const F& f) {
  if (!x.known() || !y.known()) return unknown(x.level);
  const Number all[] = {f(x.low, y.low), f(x.low, y.high), f(x.high, y.low), f(x.high, y.high)};
  if (std::any_of(std::begin(all), std::end(all), [](Number one) { return std::isnan(one); })) return unknown(x.level);
  return {x.level, *std::min_element(std::begin(all), std::end(all)), f(x.exact, y.exact),
          *std::max_element(std::begin(all), std::end(all))};
}

Range ep_mul(const Range& x, const Range& y) {
  return with_error(corners(x, y, [](Number a, Number b) { return a * b; }), bound_at(ROW(mul), x));
}

Range ep_div(const Range& x, const Range& y) {
  const auto divide = [](Number a, Number b) { return a / b; };
  const bool point = y.low == y.high;
  if (!point && y.known() && y.low <= 0 && y.high >= 0) {
    const bool sure = y.low == 0 || y.high == 0;  // the sign of the divisor is known
    if (!sure) return {x.level, -infinite, x.exact / y.exact, infinite};
    const Number zero = y.low == 0 ? Number(0) : Number(-0.0L);
    const Range divisor = {y.level, y.low == 0 ? zero : y.low, y.exact, y.low == 0 ? y.high : zero};
    return with_error(corners(x, divisor, divide), bound_at(ROW(div), x));
  }
  return with_error(corners(x, y, divide), bound_at(ROW(div), x));
}

// For single values, because all arguments of these functions are single values.
template <class F>
Range of_values(const Range& x, const Range& y, const F& f) {
  if (x.low != x.high || y.low != y.high) return unknown(x.level);
  const Number value = f(x.exact, y.exact);
  return stored({x.level, value, value, value});
}

// True if the argument is outside of the tier's promise for periodic functions.
bool is_far(const Range& x) {
  const bool limited = x.level.tier == Tier::relaxed || (x.level.tier == Tier::portable && !x.level.wide);
  return limited && magnitude(x) > pi;
}

Range wave(const Range& x, const AccuracyRow& row, Number (*f)(Number)) {
  if (!x.known()) return x;
  const Number exact = f(x.exact), spread = std::max(x.exact - x.low, x.high - x.exact);
  const bool far = is_far(x);
  const Number low = far ? -1 : std::max<Number>(-1, exact - spread);
  const Number high = far ? 1 : std::min<Number>(1, exact + spread);
  return with_error({x.level, low, exact, high}, bound_at(row, x));
}

Range of_shape(const FloatFunction& function, const AccuracyRow& row, const Range& x) {
  const auto& f = function.exact;
  switch (function.shape) {
    case Shape::RISING: return rising(x, row, f, function.first, function.last);
    case Shape::FALLING:
      return ep_neg(rising(
          x, row, [&](Number value) { return -f(value); }, function.first, function.last));
    case Shape::EVEN: return rising(ep_abs(x), row, f, function.first, function.last);
    case Shape::WAVE: return wave(x, row, f);
    case Shape::POLES: return is_far(x) ? Range{x.level, -infinite, f(x.exact), infinite} : rising(x, row, f);
    case Shape::OTHER: break;
  }
  return with_error(of_values(x, x, [&](Number value, Number) { return f(value); }), bound_at(row, x));
}
Range of_function(const FloatFunction& function, const AccuracyRow& row, const Range& x) {
  Range result = of_shape(function, row, x);
  if (result.known()) result.low = std::max<Number>(result.low, function.least);
  return result;
}
#define EP_FLOAT_FUNCTION(name, function, library, shape, first, last, least, near_roots) \
  Range inherited_##name(const Range& x, const Range& y);                                 \
  Range ep_##name(const Range& x) {                                                       \
    return widened(of_function(function_##name, ROW(name), x), inherited_##name(x, x));   \
  }
#include "ep_api/accuracy.def"
#undef EP_FLOAT_FUNCTION

Range inherited_pow(const Range& x, const Range& y);
Range ep_pow(const Range& x, const Range& y) {
  const Range own = with_error(corners(x, y, [](Number a, Number b) { return std::pow(a, b); }), bound_at(ROW(pow), x));
  return x.low > 0 ? widened(own, inherited_pow(x, y)) : own;
}

// Exact on every tier.
template <class F>
Range exactly(const Range& x, const F& f) {
  return {x.level, f(x.low), f(x.exact), f(x.high)};
}
Range ep_floor(const Range& x) {
  return exactly(x, [](Number v) { return std::floor(v); });
}
Range ep_ceil(const Range& x) {
  return exactly(x, [](Number v) { return std::ceil(v); });
}
Range ep_trunc(const Range& x) {
  return exactly(x, [](Number v) { return std::trunc(v); });
}
Range ep_rint(const Range& x) {
  return exactly(x, [](Number v) { return std::nearbyint(v); });
}
Range ep_fmod(const Range& x, const Range& y) {
  return of_values(x, y, [](Number a, Number b) { return std::fmod(a, b); });
}
Range ep_mod(const Range& x, const Range& y) {
  return of_values(x, y, [](Number a, Number b) {
    const Number rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  });
}
Range ep_floor_div(const Range& x, const Range& y) {
  return with_error(of_values(x, y, [](Number a, Number b) { return std::floor(a / b); }), {1, 0});
}
Range ep_fma(const Range& x, const Range& y, const Range& z) { return ep_add(ep_mul(x, y), z); }

Range ep_min(const Range& x, const Range& y) {
  if (!x.known() || !y.known()) return unknown(x.level);
  return {x.level, std::min(x.low, y.low), std::min(x.exact, y.exact), std::min(x.high, y.high)};
}
Range ep_max(const Range& x, const Range& y) { return ep_neg(ep_min(ep_neg(x), ep_neg(y))); }

Truth ep_lt(const Range& x, const Range& y) { return {x.low < y.high, x.high >= y.low}; }
Truth ep_le(const Range& x, const Range& y) { return {x.low <= y.high, x.high > y.low}; }
Truth ep_gt(const Range& x, const Range& y) { return ep_lt(y, x); }
Truth ep_ge(const Range& x, const Range& y) { return ep_le(y, x); }
Truth ep_eq(const Range& x, const Range& y) {
  return {x.low <= y.high && y.low <= x.high, x.low != x.high || y.low != y.high || x.low != y.low};
}
Truth ep_lnot(Truth x) { return {x.may_fail, x.may_hold}; }
Truth ep_ne(const Range& x, const Range& y) { return ep_lnot(ep_eq(x, y)); }
Truth ep_land(Truth x, Truth y) { return {x.may_hold && y.may_hold, x.may_fail || y.may_fail}; }
Truth ep_lor(Truth x, Truth y) { return ep_lnot(ep_land(ep_lnot(x), ep_lnot(y))); }
Truth ep_lxor(Truth x, Truth y) { return ep_lor(ep_land(x, ep_lnot(y)), ep_land(ep_lnot(x), y)); }
Truth ep_isnan(const Range& x) { return {!x.known(), x.known()}; }
Truth ep_isinf(const Range& x) { return {std::isinf(x.low) || std::isinf(x.high), !std::isinf(x.exact)}; }
Truth ep_truth(const Range& x) { return ep_ne(x, constant(x.level, 0)); }

Range ep_select(Truth condition, const Range& x, const Range& y) {
  if (!condition.may_fail) return x;
  if (!condition.may_hold) return y;
  return hull(x, y, x.exact);
}

#define ep_lit(value) constant(x.level, value)
#define NONE unknown(x.level)
#define EP_ACCURACY(name, full, portable, per_x, absolute, portable_f64, relaxed, relaxed_absolute, inherited) \
  [[maybe_unused]] Range inherited_##name(const Range& x, [[maybe_unused]] const Range& y) { return inherited; }
#include "ep_api/accuracy.def"
#undef EP_ACCURACY
#undef NONE

Range result_of(const Range& x) { return x; }
[[maybe_unused]] Range result_of(Truth) { return unknown({}); }

constexpr bool is_floating_domain(Domain domain) {
  return domain != Domain::INTEGER && domain != Domain::BITS && domain != Domain::BOOL && domain != Domain::COND;
}

// T is Range. This is a template so that a row of another domain need not compile.
#define EXPRESSION(id, domain, expression)                                                            \
  case id:                                                                                            \
    if constexpr (is_floating_domain(Domain::domain) && sizeof(T) != 0) return result_of(expression); \
    break;

template <class T>
Range unary_of(int32_t op, const T& x, [[maybe_unused]] const T& a, [[maybe_unused]] const T& b) {
  switch (op) {
#define EP_UNARY(name, id, domain, result, expression) EXPRESSION(id, domain, expression)
#include "ep_api/scalar_ops.def"
#undef EP_UNARY
    default: break;
  }
  return unknown(x.level);
}

template <class T>
Range binary_of(int32_t op, const T& x, const T& y) {
  switch (op) {
#define EP_BINARY(name, id, domain, result, check, expression) EXPRESSION(id, domain, expression)
#include "ep_api/scalar_ops.def"
#undef EP_BINARY
    default: break;
  }
  return unknown(x.level);
}

template <class T>
Range ternary_of(int32_t op, const T& x, const T& y, const T& z) {
  switch (op) {
#define EP_TERNARY(name, id, domain, result, expression) EXPRESSION(id, domain, expression)
#include "ep_api/scalar_ops.def"
#undef EP_TERNARY
    default: break;
  }
  return unknown(x.level);
}

}  // namespace

bool Range::known() const { return !std::isnan(low) && !std::isnan(high) && !std::isnan(exact); }

const AccuracyRow& accuracy_row(std::string_view name) {
  return *std::find_if(std::begin(rows), std::end(rows), [&](const AccuracyRow& row) { return row.name == name; });
}

std::span<const FloatFunction> float_functions() { return functions; }

Bound bound_of(const AccuracyRow& row, const Level& level, double magnitude) {
  if (level.tier == Tier::full) return {row.full, 0};
  Bound portable = {row.portable_f64, 0};
  if (!level.wide) portable = {row.portable + (row.per_x == 0 ? 0 : row.per_x * magnitude), row.absolute};
  if (level.tier == Tier::portable) return portable;
  return {std::max(portable.ulps, row.relaxed), std::max(portable.epsilons, row.relaxed_absolute)};
}

Bound beyond_full(std::string_view name, Tier tier, DType dtype, double magnitude) {
  const AccuracyRow& row = accuracy_row(name);
  const Bound bound = bound_of(row, {tier, dtype == DType::f64}, magnitude);
  return {bound.ulps - row.full, bound.epsilons};
}

long double unit_at(long double value, bool wide) {
  const int digits = wide ? 52 : 23, least = wide ? -1022 : -126;
  const Number nearest = wide ? Number(static_cast<double>(value)) : Number(static_cast<float>(value));
  if (nearest == 0) return std::ldexp(Number(1), least - digits);
  const Number sized = std::isinf(nearest) ? value : nearest;
  return std::ldexp(Number(1), std::max(std::ilogb(sized), least) - digits);
}

Range constant(const Level& level, double value) {
  const Number nearest = level.wide ? Number(value) : Number(static_cast<float>(value));
  return {level, std::min(nearest, Number(value)), value, std::max(nearest, Number(value))};
}

Range unary_range(int32_t op, const Range& x, const Range& a, const Range& b) { return unary_of(op, x, a, b); }
Range binary_range(int32_t op, const Range& x, const Range& y) { return binary_of(op, x, y); }
Range ternary_range(int32_t op, const Range& x, const Range& y, const Range& z) { return ternary_of(op, x, y, z); }

}  // namespace tenon::cases
