// Gradients of element-wise ops that one expression cannot state.
#include <cmath>
#include <numbers>
#include <type_traits>

#include "core/ops/attributes.h"
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

// The derivative of 0^y with respect to y is 0 if y is not negative.
Tensor power_by_exponent(const Tensor& grad, const Tensor& result, const Scalar& input, const Tensor& exponent) {
  const double base = input.to_double();
  const Tensor moved = grad * (result * std::log(base));
  return base == 0 ? tenon::where(tenon::ge(exponent, 0), 0, moved) : moved;
}
Tensor power_by_exponent(const Tensor& grad, const Tensor& result, const Tensor& input, const Tensor& exponent) {
  const Tensor stays = tenon::logical_and(tenon::eq(input, 0), tenon::ge(exponent, 0));
  return tenon::where(stays, 0, grad * (result * tenon::log(tenon::where(stays, 1, input))));
}

// At input = 0 the gradient of grad * log(other) is its limit, which is 0 where there is no logarithm.
Tensor xlogy_by_input(const Tensor& grad, const Tensor& input, const Tensor& other) {
  const Tensor none = tenon::logical_and(tenon::eq(input, 0), tenon::le(other, 0));
  return tenon::where(none, 0, tenon::xlogy(grad, other));
}
Tensor xlogy_by_input(const Tensor& grad, const Tensor& input, const Scalar& other) {
  const Tensor slope = tenon::xlogy(grad, other);
  return other.to_double() > 0 ? slope : tenon::where(tenon::eq(input, 0), 0, slope);
}

template <class T>
constexpr bool is_number = std::is_same_v<T, Scalar>;

// Two equal tensors share the gradient equally.
Tensor shared(const Tensor& grad, const Tensor& a, const Tensor& b) {
  return tenon::where(tenon::eq(a, b), grad * 0.5, grad);
}

// The gradient of the argument that beats the other one: `beats` is gt or lt. A NaN gets the gradient on both sides. A
// number is a bound; where the argument equals it, the gradient is 0.
template <class Beats>
void give_to_extreme(const autograd::Backward& b, const Beats& beats) {
  for (const size_t i : {0, 1}) {
    if (!b.wants(i)) continue;
    const Tensor x = b.input(i);
    b.with(1 - i, [&]<class Other>(const Other& other) {
      if constexpr (is_number<Other>) {
        b.give(i, tenon::where(beats(x, other), b.grad(), 0));
      } else {
        b.give(i, tenon::where(beats(other, x), 0, shared(b.grad(), x, other)));
      }
    });
  }
}

bool is_nan(const Scalar& number) { return std::isnan(number.to_double()); }

// Like the function above, but a NaN never beats a number. `first`: true for argument 0 of two, which gets the gradient
// if both are NaN.
template <class Beats>
Tensor of_extreme_number(const Tensor& grad, const Tensor& x, const Tensor& other, bool first, const Beats& beats) {
  const Tensor same = tenon::eq(x, other);
  const Tensor alone = first ? tenon::isnan(other) : tenon::logical_and(tenon::isnan(other), tenon::eq(x, x));
  const Tensor kept = tenon::logical_or(tenon::logical_or(beats(x, other), same), alone);
  return tenon::where(kept, tenon::where(same, grad * 0.5, grad), 0);
}
template <class Beats>
Tensor of_extreme_number(const Tensor& grad, const Tensor& x, const Scalar& other, bool, const Beats& beats) {
  return is_nan(other) ? grad : tenon::where(beats(x, other), grad, 0);
}

template <class Beats>
void give_to_extreme_number(const autograd::Backward& b, const Beats& beats) {
  for (const size_t i : {0, 1}) {
    if (!b.wants(i)) continue;
    b.with(1 - i, [&](const auto& other) { b.give(i, of_extreme_number(b.grad(), b.input(i), other, i == 0, beats)); });
  }
}

constexpr auto above = [](const auto& a, const auto& b) { return tenon::gt(a, b); };
constexpr auto below = [](const auto& a, const auto& b) { return tenon::lt(a, b); };

// For clamp: true where the input is beyond a bound. If the bound is a number, an input equal to it counts as beyond.
template <class Bound>
Tensor beyond_low(const Tensor& input, const Bound& min) {
  if constexpr (is_number<Bound>) return tenon::logical_not(tenon::gt(input, min));
  return tenon::lt(input, min);
}
template <class Bound>
Tensor beyond_high(const Tensor& input, const Bound& max) {
  if constexpr (is_number<Bound>) return tenon::logical_not(tenon::lt(input, max));
  return tenon::gt(input, max);
}

// The input shares its gradient with one bound tensor that equals it, but not with two.
template <class Min, class Max>
Tensor of_clamped(const Tensor& grad, const Tensor& input, const Min& min, const Max& max) {
  const Tensor beyond = tenon::logical_or(beyond_low(input, min), beyond_high(input, max));
  if constexpr (is_number<Min> && is_number<Max>) {
    return tenon::where(beyond, 0, grad);
  } else if constexpr (is_number<Min>) {
    return tenon::where(beyond, 0, shared(grad, input, max));
  } else if constexpr (is_number<Max>) {
    return tenon::where(beyond, 0, shared(grad, input, min));
  } else {
    const Tensor one = tenon::logical_xor(tenon::eq(input, min), tenon::eq(input, max));
    return tenon::where(beyond, 0, tenon::where(one, grad * 0.5, grad));
  }
}

// `bound` gets the whole gradient where `whole` is true, and half where the input equals this bound and not the other.
Tensor of_bound(const Tensor& grad, const Tensor& whole, const Tensor& input, const Tensor& bound,
                const Tensor& apart) {
  const Tensor at = tenon::logical_and(tenon::eq(input, bound), apart);
  return tenon::where(whole, grad, tenon::where(at, grad * 0.5, 0));
}

Tensor squared(const Tensor& x) { return tenon::square(x); }
Scalar squared(const Scalar& x) { return Scalar(x.to_double() * x.to_double()); }

// grad / (x^2 + y^2), but 0 where both are 0.
template <class Other>
Tensor over_squares(const Tensor& grad, const Tensor& x, const Other& y) {
  const Tensor squares = squared(x) + squared(y);
  const Tensor none = tenon::eq(squares, 0);
  return tenon::where(none, 0, grad / tenon::where(none, 1, squares));
}

}  // namespace

void maximum(const autograd::Backward& b) { give_to_extreme(b, above); }
void minimum(const autograd::Backward& b) { give_to_extreme(b, below); }
void fmax(const autograd::Backward& b) { give_to_extreme_number(b, above); }
void fmin(const autograd::Backward& b) { give_to_extreme_number(b, below); }

void clamp(const autograd::Backward& b) {
  const Tensor input = b.input(0);
  b.with(1, [&]<class Min>(const Min& min) {
    b.with(2, [&]<class Max>(const Max& max) {
      if (b.wants(0)) b.give(0, of_clamped(b.grad(), input, min, max));
      if constexpr (!is_number<Min>) {
        const Tensor whole = tenon::logical_and(tenon::lt(input, min), tenon::le(min, max));
        if (b.wants(1)) b.give(1, of_bound(b.grad(), whole, input, min, tenon::lt(min, max)));
      }
      if constexpr (!is_number<Max>) {
        const Tensor whole = tenon::logical_or(tenon::gt(input, max), tenon::gt(min, max));
        if (b.wants(2)) b.give(2, of_bound(b.grad(), whole, input, max, tenon::lt(min, max)));
      }
    });
  });
}

// The slope is alpha where the result is strictly between 0 and 1.
void hard_sigmoid(const autograd::Backward& b) {
  const double alpha = b.scalar(0);
  const double middle = b.scalar(1) - 0.5;
  const Tensor x = middle == 0 ? b.input(0) : b.input(0) + middle / alpha;
  b.give(0, tenon::where(tenon::lt(tenon::abs(x), 0.5 / std::abs(alpha)), b.grad() * alpha, 0));
}

// 1 / (x (1 - x)) where eps <= x <= 1 - eps, else 0.
void logit(const autograd::Backward& b) {
  const bool bounded = b.attributes<LogitAttributes>().eps_given != 0;
  const double low = bounded ? b.scalar(0) : 0;
  const Tensor input = b.input(0);
  const Tensor beyond = tenon::logical_or(tenon::lt(input, low), tenon::gt(input, 1 - low));
  const Tensor x = tenon::where(beyond, 0.5, input);
  b.give(0, tenon::where(beyond, Scalar(bounded ? 0.0 : std::nan("")), b.grad() / (x * (1 - x))));
}

void atan2(const autograd::Backward& b) {
  for (const size_t i : {0, 1}) {
    if (!b.wants(i)) continue;
    const double sign = i == 0 ? 1 : -1;
    b.with(1 - i, [&](const auto& other) { b.give(i, over_squares(b.grad(), b.input(i), other) * other * sign); });
  }
}

void xlogy(const autograd::Backward& b) {
  if (b.wants(0)) {
    b.with(1, [&](const auto& other) { b.give(0, xlogy_by_input(b.grad(), b.input(0), other)); });
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
    b.with(0, [&](const auto& input) { b.give(1, power_by_exponent(b.grad(), b.result(), input, b.input(1))); });
  }
}

// With t = tanh(u(x)): x (1 + t) / 2 has the derivative (1 + t) / 2 + x (1 - t^2) u'(x) / 2.
void gelu_tanh(const autograd::Backward& b) {
  constexpr double kRoot = 0.7978845608028654;  // sqrt(2 / pi)
  constexpr double kCubic = 0.044715;
  const Tensor input = b.input(0);
  const Tensor power = tenon::square(input);
  const Tensor t = tenon::tanh(input * (power * (kRoot * kCubic) + kRoot));
  const Tensor slope = power * (3 * kRoot * kCubic) + kRoot;
  b.give(0, b.grad() * ((t + 1) * 0.5 + input * (1 - tenon::square(t)) * slope * 0.5));
}

}  // namespace tenon::gradients
