// Element-wise ops whose gradient is no expression.
#include <cmath>
#include <numbers>

#include "core/ops/gradients.h"
#include "core/ops/operators.h"

namespace tenon::gradients {
namespace {

Tensor power_by_base(const Tensor& grad, const Tensor& input, const Scalar& exponent) {
  const double number = exponent.to_double();
  if (number == 0) return tenon::zeros_like(grad);
  return grad * (tenon::pow(input, number - 1) * number);
}
Tensor power_by_base(const Tensor& grad, const Tensor& input, const Tensor& exponent) {
  return tenon::where(tenon::eq(exponent, 0), 0, grad * (exponent * tenon::pow(input, exponent - 1)));
}

Tensor power_by_exponent(const Tensor& grad, const Tensor& result, const Scalar& input) {
  const double base = input.to_double();
  return base == 0 ? tenon::zeros_like(grad) : grad * (result * std::log(base));
}
// 0 to a power that moves stays 0.
Tensor power_by_exponent(const Tensor& grad, const Tensor& result, const Tensor& input) {
  const Tensor zero = tenon::eq(input, 0);
  return tenon::where(zero, 0, grad * (result * tenon::log(tenon::where(zero, 1, input))));
}

Tensor logarithm(const Tensor& x) { return tenon::log(x); }
Scalar logarithm(const Scalar& x) { return std::log(x.to_double()); }

}  // namespace

void xlogy(const autograd::Backward& b) {
  if (b.wants(0)) {
    b.with(1, [&](const auto& other) {
      b.give(0, tenon::where(tenon::eq(b.input(0), 0), 0, b.grad() * logarithm(other)));
    });
  }
  if (b.wants(1)) {
    b.with(0, [&](const auto& input) { b.give(1, b.grad() * input / b.input(1)); });
  }
}

// The trigamma function: the recurrence up to 8, the asymptotic series beyond, and the reflection formula for negative
// arguments (Abramowitz and Stegun 6.4.6, 6.4.7, 6.4.12).
void digamma(const autograd::Backward& b) {
  const Tensor& x = b.input(0);
  const Tensor y = tenon::where(tenon::lt(x, 0), 1 - x, x);
  Tensor sum = tenon::reciprocal(tenon::square(y));
  for (int k = 1; k < 8; ++k) sum = sum + tenon::reciprocal(tenon::square(y + k));
  const Tensor r = tenon::reciprocal(y + 8);
  const Tensor w = tenon::square(r);
  Tensor series = w * (5.0 / 66.0);
  for (const double factor : {1.0 / 30.0, 1.0 / 42.0, 1.0 / 30.0, 1.0 / 6.0}) series = (factor - series) * w;
  const Tensor positive = sum + r + w * 0.5 + series * r;
  const Tensor mirror = tenon::square(std::numbers::pi / tenon::sin(x * std::numbers::pi));
  b.give(0, b.grad() * tenon::where(tenon::lt(x, 0), mirror - positive, positive));
}

void pow(const autograd::Backward& b) {
  if (b.wants(0)) {
    b.with(1, [&](const auto& exponent) { b.give(0, power_by_base(b.grad(), b.input(0), exponent)); });
  }
  if (b.wants(1)) {
    b.with(0, [&](const auto& input) { b.give(1, power_by_exponent(b.grad(), b.result(), input)); });
  }
}

// With t = tanh(u(x)): x (1 + t) / 2 has the derivative (1 + t) / 2 + x (1 - t^2) u'(x) / 2.
void gelu_tanh(const autograd::Backward& b) {
  constexpr double kRoot = 0.7978845608028654;  // of 2 / pi
  constexpr double kCubic = 0.044715;
  const Tensor input = b.input(0);
  const Tensor power = tenon::square(input);
  const Tensor t = tenon::tanh(input * (power * (kRoot * kCubic) + kRoot));
  const Tensor slope = power * (3 * kRoot * kCubic) + kRoot;
  b.give(0, b.grad() * ((t + 1) * 0.5 + input * (1 - tenon::square(t)) * slope * 0.5));
}

}  // namespace tenon::gradients
