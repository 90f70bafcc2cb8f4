// Element-wise functions that are written in other ops.
#include <cmath>
#include <limits>

#include "core/ops/functors/apply.h"
#include "core/ops/functors/half.h"
#include "core/ops/functors/sized.h"
#include "core/ops/operators.h"

namespace tenon::functors {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kDegrees = 57.295779513082320877;  // degrees of one radian

// The greatest finite number of a floating dtype.
double greatest(DType dtype) {
  switch (dtype) {
    case DType::f64: return std::numeric_limits<double>::max();
    case DType::f16: return 65504;
    case DType::bf16: return 3.3895313892515355e38;
    default: return std::numeric_limits<float>::max();
  }
}

// The unit roundoff of a floating dtype (half the distance from 1 to the next number), and its least positive number.
struct Steps {
  double unit, least;
};
Steps steps_of(DType dtype) {
  switch (dtype) {
    case DType::f64: return {0x1p-53, 0x1p-1074};
    case DType::f32: return {0x1p-24, 0x1p-149};
    case DType::f16: return {0x1p-11, 0x1p-24};
    case DType::bf16: return {0x1p-8, 0x1p-133};
    default: refuse("nextafter", "needs f64, f32, f16 or bf16, but got {}.", dtype_name(dtype));
  }
}

template <class A, class B>
Tensor quotient(const A& a, const B& b) {
  return tenon::div(a, b);
}

Tensor wide(const Tensor& x) { return tenon::cast(x, DType::f64); }
Scalar wide(const Scalar& x) { return Scalar(x.to_double()); }

// c[0] + c[1] x + ...
Tensor polynomial(const Tensor& x, std::initializer_list<double> coefficients) {
  Tensor result;
  for (auto c = std::rbegin(coefficients); c != std::rend(coefficients); ++c) {
    result = result.defined() ? result * x + *c : tenon::full_like(x, Scalar(*c));
  }
  return result;
}

}  // namespace

Tensor deg2rad(const Tensor& input) { return floating("deg2rad", input) * (1 / kDegrees); }
Tensor rad2deg(const Tensor& input) { return floating("rad2deg", input) * kDegrees; }

Tensor positive(const Tensor& input) {
  require_defined("positive", "input", input);
  if (input.dtype() == DType::boolean) refuse("positive", "a bool tensor has no sign.");
  return input;
}

Tensor true_divide(const Tensor& input, const Tensor& other) { return quotient(input, other); }
Tensor true_divide(const Tensor& input, Scalar other) { return quotient(input, other); }
Tensor true_divide(Scalar input, const Tensor& other) { return quotient(input, other); }

Tensor rsub(const Tensor& input, const Tensor& other, Scalar alpha) { return tenon::sub(other, input, alpha); }
Tensor rsub(const Tensor& input, Scalar other, Scalar alpha) { return tenon::sub(other, input, alpha); }

Tensor float_power(const Tensor& input, const Tensor& exponent) {
  require_defined("float_power", "input", input);
  require_defined("float_power", "exponent", exponent);
  return tenon::pow(wide(input), wide(exponent));
}
Tensor float_power(const Tensor& input, Scalar exponent) {
  require_defined("float_power", "input", input);
  return tenon::pow(wide(input), wide(exponent));
}
Tensor float_power(Scalar input, const Tensor& exponent) {
  require_defined("float_power", "exponent", exponent);
  return tenon::pow(wide(input), wide(exponent));
}

Tensor ldexp(const Tensor& input, const Tensor& other) {
  // A float input keeps its dtype if the exponents are integers. The power is applied as two factors, so that neither
  // is infinite if the result is finite.
  const Tensor x = floating("ldexp", input);
  require_defined("ldexp", "other", other);
  const Tensor power = tenon::cast(other, is_floating(other.dtype()) ? promote(x.dtype(), other.dtype()) : x.dtype());
  const Tensor half = tenon::floor(tenon::clamp(power, Scalar(-4200.0), Scalar(4200.0)) * 0.5);
  return x * tenon::exp2(half) * tenon::exp2(power - half);
}

// The next number up is the sum with slightly more than half a step, rounded (Rump, Zimmermann, Boldo and Melquiond,
// Computing predecessor and successor in rounding to nearest, 2009, algorithm 2).
Tensor nextafter(const Tensor& input, const Tensor& other) {
  const DType dtype = promote(floating("nextafter", input).dtype(), floating("nextafter", other).dtype());
  const Tensor from = tenon::cast(input, dtype);
  const Tensor to = tenon::cast(other, dtype);
  const Steps steps = steps_of(dtype);
  const double more = steps.unit * (1 + 2 * steps.unit);
  const Tensor way = tenon::where(tenon::gt(to, from), tenon::full_like(from, Scalar(1)), Scalar(-1));
  const Tensor x = from * way;  // compute the next number above this
  const Tensor size = tenon::abs(x);
  const Tensor scaled = x * (1 / steps.unit);
  const Tensor small = (scaled + tenon::abs(scaled) * more) * steps.unit;
  const Tensor next = tenon::where(tenon::lt(size, Scalar(steps.least / steps.unit)), x + steps.least, small);
  const Scalar far(steps.least / steps.unit / steps.unit / 2);
  Tensor result = tenon::where(tenon::ge(size, far), x + size * more, next);
  result = tenon::where(tenon::isinf(x), Scalar(-greatest(dtype)), result) * way;
  result = tenon::where(tenon::eq(result, Scalar(0)), from * 0, result);  // a zero keeps the sign of input
  return tenon::where(tenon::logical_or(tenon::eq(from, to), tenon::isnan(to)), to, result);
}

Tensor isposinf(const Tensor& input) {
  require_defined("isposinf", "input", input);
  if (!is_floating(input.dtype())) return tenon::full_like(input, Scalar(false), DType::boolean);
  return tenon::eq(input, Scalar(kInfinity));
}
Tensor isneginf(const Tensor& input) {
  require_defined("isneginf", "input", input);
  if (!is_floating(input.dtype())) return tenon::full_like(input, Scalar(false), DType::boolean);
  return tenon::eq(input, Scalar(-kInfinity));
}
Tensor isreal(const Tensor& input) {
  require_defined("isreal", "input", input);
  return tenon::full(ShapeOf(input).list(), Scalar(true), DType::boolean, input.device());
}

Tensor nan_to_num(const Tensor& input, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  require_defined("nan_to_num", "input", input);
  if (!is_floating(input.dtype())) return tenon::clone(input);
  const double most = greatest(input.dtype());
  if (!posinf && !neginf) return tenon::nan_to_num_within(input, nan, most);
  Tensor result = tenon::where(tenon::isnan(input), Scalar(nan), input);
  result = tenon::where(tenon::isposinf(input), Scalar(posinf.value_or(most)), result);
  return tenon::where(tenon::isneginf(input), Scalar(neginf.value_or(-most)), result);
}

Tensor clamp_min(const Tensor& input, Scalar min) { return tenon::clamp(input, std::optional(min)); }
Tensor clamp_min(const Tensor& input, const Tensor& min) { return tenon::maximum(input, min); }
Tensor clamp_max(const Tensor& input, Scalar max) { return tenon::clamp(input, std::nullopt, std::optional(max)); }
Tensor clamp_max(const Tensor& input, const Tensor& max) { return tenon::minimum(input, max); }

Tensor hardtanh(const Tensor& input, double min_val, double max_val) {
  require_defined("hardtanh", "input", input);
  if (!(min_val <= max_val)) refuse("hardtanh", "min_val is {}, which is above max_val, {}.", min_val, max_val);
  return tenon::clamp(input, in_dtype(Scalar(min_val), input.dtype()), in_dtype(Scalar(max_val), input.dtype()));
}
Tensor relu6(const Tensor& input) { return tenon::clamp(input, Scalar(0), Scalar(6)); }
Tensor hardsigmoid(const Tensor& input) { return tenon::hard_sigmoid(input); }
Tensor softshrink(const Tensor& input, double lambd) {
  if (!(lambd >= 0)) refuse("softshrink", "lambd is {}; it must be at least 0.", lambd);
  return tenon::shrink(input, lambd, lambd);
}
Tensor hardshrink(const Tensor& input, double lambd) { return tenon::shrink(input, lambd, 0); }
Tensor softmin(const Tensor& input, int64_t dim, DType dtype) {
  require_defined("softmin", "input", input);
  return tenon::softmax(tenon::neg(dtype == DType::none ? input : tenon::cast(input, dtype)), dim);
}

Tensor glu(const Tensor& input, int64_t dim) {
  require_defined("glu", "input", input);
  if (input.rank() == 0) refuse("glu", "a tensor of rank 0 has no axis to halve.");
  const int32_t axis = axis_of("glu", dim, input.rank());
  const int64_t length = input.dim(axis);
  if (length % 2 != 0) refuse("glu", "axis {} has length {}, which cannot be halved.", axis, length);
  return tenon::narrow(input, axis, 0, length / 2) * tenon::sigmoid(tenon::narrow(input, axis, length / 2, length / 2));
}

Tensor addcmul(const Tensor& input, const Tensor& tensor1, const Tensor& tensor2, Scalar value) {
  require_defined("addcmul", "input", input);
  require_defined("addcmul", "tensor1", tensor1);
  require_defined("addcmul", "tensor2", tensor2);
  if (is_floating(input.dtype()) && value.to_double() == 1) return tenon::fma(tensor1, tensor2, input);
  const Halves halves{&input, &tensor1, &tensor2};
  return halves.rounded(
      tenon::add(Halves::widened(input), tenon::mul(Halves::widened(tensor1), Halves::widened(tensor2)), value));
}
Tensor addcdiv(const Tensor& input, const Tensor& tensor1, const Tensor& tensor2, Scalar value) {
  return tenon::add(input, tenon::div(tensor1, tensor2), value);
}

Tensor logit(const Tensor& input, std::optional<double> eps) {
  Tensor x = floating("logit", input);
  if (eps) {
    // Apply the lower bound first, even if eps is above 1/2.
    const Tensor below = tenon::minimum(x, Scalar(1 - *eps));
    x = tenon::where(tenon::lt(x, Scalar(*eps)), Scalar(*eps), below);
  }
  return tenon::log(x / (1 - x));
}

Tensor isclose(const Tensor& input, const Tensor& other, double rtol, double atol, bool equal_nan) {
  require_defined("isclose", "input", input);
  require_defined("isclose", "other", other);
  if (input.dtype() != other.dtype()) {
    refuse("isclose", "input is {} and other {}; they must have one dtype.", dtype_name(input.dtype()),
           dtype_name(other.dtype()));
  }
  if (rtol < 0 || atol < 0) refuse("isclose", "rtol is {} and atol {}; they must be at least 0.", rtol, atol);
  Tensor same = tenon::eq(input, other);
  if (!is_floating(input.dtype()) && rtol == 0 && atol == 0) return same;
  const DType dtype = is_floating(input.dtype()) ? input.dtype() : DType::f64;
  const Tensor a = tenon::cast(input, dtype), b = tenon::cast(other, dtype);
  // An infinite bound allows no deviation: only an infinite number itself is close to an infinite `other`.
  const Tensor near = tenon::le(tenon::abs(a - b), tenon::abs(b) * rtol + atol);
  same = tenon::logical_or(same, tenon::logical_and(near, tenon::isfinite(b)));
  return equal_nan ? tenon::logical_or(same, tenon::logical_and(tenon::isnan(a), tenon::isnan(b))) : same;
}

namespace {

// M. Giles' single-precision approximation of erfinv for y >= 0 (GPU Computing Gems, 2012).
Tensor rough_erfinv(const Tensor& y) {
  const Tensor w = -tenon::log((1 - y) * (1 + y));
  const Tensor near = polynomial(w - 2.5, {1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 0.00021858087,
                                           -4.39150654e-06, -3.5233877e-06, 3.43273939e-07, 2.81022636e-08});
  const Tensor far = polynomial(tenon::sqrt(tenon::maximum(w, 5.0)) - 3.0,
                                {2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773, -0.00367342844,
                                 0.00134934322, 0.000100950558, -0.000200214257});
  const Tensor result = tenon::where(tenon::lt(w, 5.0), near, far) * y;
  if (y.dtype() != DType::f64) return result;
  // For numbers closer to 1 than a float can be: erfc(x) is about exp(-x^2) / (x sqrt(pi)).
  const Tensor size = w + std::log(2.0);
  return tenon::where(tenon::lt(w, 16.0), result, tenon::sqrt(size - tenon::log(size * 3.14159265358979323846) * 0.5));
}

}  // namespace

// Refines the approximation with Newton's method, on erf near 0 and on the logarithm of erfc elsewhere.
Tensor erfinv(const Tensor& input) {
  const Tensor x = floating("erfinv", input);
  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor signed_y = tenon::cast(x, dtype);
  const Tensor y = tenon::abs(signed_y);
  Tensor result = rough_erfinv(y);
  for (int step = 0; step < (dtype == DType::f64 ? 3 : 1); ++step) {
    const Tensor tail = tenon::erfc(result);
    const Tensor excess = tenon::where(tenon::lt(y, 0.5), tenon::erf(result) - y, tenon::log((1 - y) / tail) * tail);
    result = result - excess * tenon::exp(tenon::square(result)) * 0.88622692545275801365;
  }
  const Tensor end = tenon::where(tenon::eq(y, 1), Scalar(kInfinity), tenon::full_like(y, Scalar(std::nan(""))));
  return tenon::cast(tenon::copysign(tenon::where(tenon::lt(y, 1), result, end), signed_y), x.dtype());
}

}  // namespace tenon::functors
