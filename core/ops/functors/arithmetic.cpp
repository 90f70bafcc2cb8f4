// add, sub, div, pow, gelu: element-wise ops with an extra argument that selects the formula.
#include <cmath>
#include <limits>

#include "core/ops/composite.h"
#include "core/ops/floating_point.h"
#include "core/ops/functors/apply.h"
#include "core/ops/functors/half.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

bool is_one(const Scalar& alpha) { return alpha.to_double() == 1; }

// `alpha` converted to the class in which arguments promoted to `dtype` are computed.
Scalar fitting_alpha(OpId id, DType dtype, const Scalar& alpha) {
  if (alpha.dtype() == DType::f64 && !is_floating(dtype)) {
    refuse(op_row(id).name, "alpha must not be a floating-point number where the arguments are {}.", dtype_name(dtype));
  }
  return dtype == DType::boolean ? Scalar(alpha.to_double() != 0) : alpha;
}

void refuse_bools(OpId id, const Tensor& a, const Tensor& b) {
  const bool first = a.dtype() == DType::boolean;
  const bool second = b.dtype() == DType::boolean;
  if (first || second) elementwise::refuse_bool(op_row(id), first && second);
}
void refuse_bools(OpId id, const Scalar& a, const Tensor& b) {
  if (b.dtype() == DType::boolean) elementwise::refuse_bool(op_row(id), a.dtype() == DType::boolean);
}

DType joint_dtype(const Tensor& a, const Tensor& b) { return promote_tensors(a, b); }
DType joint_dtype(const Scalar& a, const Tensor& b) { return promote_with(b.dtype(), a); }
DType joint_dtype(const Tensor& a, const Scalar& b) { return promote_with(a.dtype(), b); }

void require_given(OpId id, const Tensor& input) { require_defined(op_row(id).name, "input", input); }
void require_given(OpId, const Scalar&) {}

Tensor widened(const Tensor& x) { return Halves::widened(x); }
const Scalar& widened(const Scalar& x) { return x; }

// Writes `result` into `out`, or returns it if `out` is null.
Tensor delivered(OpId id, Tensor* out, const Tensor& result) {
  if (out == nullptr) return result;
  overwrite(op_row(id).name, *out, result);
  return {};
}

template <class A>
[[gnu::noinline, gnu::cold]] Tensor add_product(OpId id, Tensor* out, const A& input, const Tensor& other,
                                                const Scalar& alpha) {
  require_given(id, input);
  require_defined(op_row(id).name, "other", other);
  refuse_bools(id, input, other);
  const DType dtype = joint_dtype(input, other);
  const Scalar factor = fitting_alpha(id, dtype, alpha);
  if (!is_half(dtype)) return binary_to(id, out, input, tenon::mul(other, factor));
  const Tensor sum = binary_to(id, nullptr, widened(input), tenon::mul(widened(other), factor));
  return delivered(id, out, tenon::cast(sum, dtype));
}

template <class A>
Tensor scaled_add(OpId id, Tensor* out, const A& input, const Tensor& other, const Scalar& alpha) {
  return is_one(alpha) ? binary_to(id, out, input, other) : add_product(id, out, input, other, alpha);
}

// alpha * other as a number. It is an integer if both are.
Scalar product(OpId id, const Tensor& input, const Scalar& other, Scalar alpha) {
  if (is_one(alpha)) return other;
  require_given(id, input);
  alpha = fitting_alpha(id, promote_with(input.dtype(), other), alpha);
  if (other.dtype() == DType::boolean && alpha.dtype() == DType::boolean) return alpha == Scalar(false) ? alpha : other;
  if (other.dtype() == DType::f64 || alpha.dtype() == DType::f64) {
    return Scalar(in_default_state({other.to_double(), alpha.to_double()},
                                   [](const volatile double* numbers) { return numbers[0] * numbers[1]; }));
  }
  return Scalar(static_cast<int64_t>(static_cast<uint64_t>(other.to_int()) * static_cast<uint64_t>(alpha.to_int())));
}

// `x` as a floating tensor, since integers divide as f32: `x` itself, or a copy stored in `copy`.
const Tensor& as_float(std::string_view name, const Tensor& x, Tensor* copy) {
  require_defined("div", name, x);
  if (is_floating(x.dtype())) return x;
  *copy = tenon::cast(x, DType::f32);
  return *copy;
}
const Scalar& as_float(std::string_view, const Scalar& x, Tensor*) { return x; }

bool any_floating(const Tensor& x) { return is_floating(x.dtype()); }
bool any_floating(const Scalar& x) { return x.dtype() == DType::f64; }

template <class A, class B>
Tensor divide_rounded(Tensor* out, const A& input, const B& other, std::string_view mode) {
  if (mode == "floor") return binary_to(OpId::floor_divide, out, input, other);
  if (mode != "trunc") refuse("div", "rounding_mode is '{}'; it may be None, 'trunc' or 'floor'.", mode);
  if (!any_floating(input) && !any_floating(other)) return binary_to(OpId::div, out, input, other);
  return unary_to(OpId::trunc, out, binary_to(OpId::div, nullptr, input, other));
}

// Divides halves without first rounding the quotient to a half, which could change the whole number it is then rounded
// to.
template <class A, class B>
Tensor divide_wide(Tensor* out, const A& input, const B& other, std::string_view mode) {
  require_given(OpId::div, input);
  require_given(OpId::div, other);
  const DType dtype = joint_dtype(input, other);
  if (!is_half(dtype)) return divide_rounded(out, input, other, mode);
  return delivered(OpId::div, out, tenon::cast(divide_rounded(nullptr, widened(input), widened(other), mode), dtype));
}

template <class A, class B>
Tensor divide(Tensor* out, const A& input, const B& other, std::optional<std::string_view> mode) {
  if (!mode) {
    Tensor copies[2];
    return binary_to(OpId::div, out, as_float("input", input, &copies[0]), as_float("other", other, &copies[1]));
  }
  return composite::called(op_row(OpId::div).named, [&] { return divide_wide(out, input, other, *mode); });
}

}  // namespace

Tensor add(Tensor* out, const Tensor& input, const Tensor& other, Scalar alpha) {
  return scaled_add(OpId::add, out, input, other, alpha);
}
Tensor add(Tensor* out, const Tensor& input, Scalar other, Scalar alpha) {
  return binary_to(OpId::add, out, input, product(OpId::add, input, other, alpha));
}
Tensor add(Tensor* out, Scalar input, const Tensor& other, Scalar alpha) {
  return scaled_add(OpId::add, out, input, other, alpha);
}

Tensor sub(Tensor* out, const Tensor& input, const Tensor& other, Scalar alpha) {
  return scaled_add(OpId::sub, out, input, other, alpha);
}
Tensor sub(Tensor* out, const Tensor& input, Scalar other, Scalar alpha) {
  if (other.dtype() == DType::boolean) [[unlikely]]
    elementwise::refuse_bool(op_row(OpId::sub), input.defined() && input.dtype() == DType::boolean);
  return binary_to(OpId::sub, out, input, product(OpId::sub, input, other, alpha));
}
Tensor sub(Tensor* out, Scalar input, const Tensor& other, Scalar alpha) {
  if (input.dtype() == DType::boolean) [[unlikely]]
    elementwise::refuse_bool(op_row(OpId::sub), other.defined() && other.dtype() == DType::boolean);
  return scaled_add(OpId::sub, out, input, other, alpha);
}

Tensor div(Tensor* out, const Tensor& input, const Tensor& other, std::optional<std::string_view> rounding_mode) {
  return divide(out, input, other, rounding_mode);
}
Tensor div(Tensor* out, const Tensor& input, Scalar other, std::optional<std::string_view> rounding_mode) {
  return divide(out, input, other, rounding_mode);
}
Tensor div(Tensor* out, Scalar input, const Tensor& other, std::optional<std::string_view> rounding_mode) {
  return divide(out, input, other, rounding_mode);
}

Tensor pow(Tensor* out, const Tensor& input, const Tensor& exponent) {
  return binary_to(OpId::pow, out, input, exponent);
}

Tensor pow(Tensor* out, const Tensor& input, Scalar exponent) {
  require_defined("pow", "input", input);
  const bool whole = exponent.dtype() != DType::f64 && !is_floating(input.dtype());
  if (whole && exponent.to_int() < 0) {
    refuse("pow", "integers to the negative integer power {} have no integer result; cast to f32.", exponent.to_int());
  }
  if (input.dtype() != DType::boolean && promote_with(input.dtype(), exponent) == input.dtype()) {
    if (exponent.to_double() == 2) return unary_to(OpId::square, out, input);
    if (exponent.to_double() == 0.5) return unary_to(OpId::sqrt, out, input);
  }
  return binary_to(OpId::pow, out, input, exponent);
}

Tensor pow(Tensor* out, Scalar input, const Tensor& exponent) { return binary_to(OpId::pow, out, input, exponent); }

// The row is defined for signed numbers. For unsigned ones of n bits, -x is x * (2^n - 1), which wraps. A difference
// cannot be used: the decomposition of `sub` uses a negation.
Tensor neg(Tensor* out, const Tensor& input) {
  const DTypeInfo& info = dtype_info(input.defined() ? input.dtype() : DType::none);
  if (info.type_class != DTypeClass::UINT) return unary_to(OpId::neg, out, input);
  return binary_to(OpId::mul, out, input, Scalar(~uint64_t{0} >> (64 - info.bits)));
}

Tensor sign(Tensor* out, const Tensor& input) {
  if (input.defined() && input.dtype() == DType::boolean) return binary_to(OpId::logical_or, out, input, input);
  if (!input.defined() || !is_floating(input.dtype())) return unary_to(OpId::sign, out, input);
  // The row returns NaN for NaN, whose sign is 0 in PyTorch.
  return unary_to(OpId::sign, out, tenon::nan_to_num_within(input, 0, std::numeric_limits<double>::infinity()));
}

Tensor prelu(Tensor* out, const Tensor& input, const Tensor& weight) {
  require_defined("prelu", "input", input);
  require_defined("prelu", "weight", weight);
  if (input.rank() == 0 && weight.rank() == 1 && weight.dim(0) == 1)
    return binary_to(OpId::prelu, out, input, tenon::reshape(weight, IntList()));
  if (input.rank() < 2 || weight.rank() != 1 || identical(size_at(weight, 0), SymDim(1)))
    return binary_to(OpId::prelu, out, input, weight);
  if (!expect(size_at(weight, 0) == size_at(input, 1))) {
    refuse("prelu", "weight has {} elements, but input of shape {} has {} channels.", size_at(weight, 0), sizes(input),
           size_at(input, 1));
  }
  Tensor slopes = weight;  // [channels, 1, ..]
  while (slopes.rank() < input.rank() - 1) slopes = tenon::unsqueeze(slopes, slopes.rank());
  return binary_to(OpId::prelu, out, input, slopes);
}

Tensor threshold(Tensor* out, const Tensor& input, double threshold, double value) {
  require_defined("threshold", "input", input);
  if (!is_floating(input.dtype())) {
    const Scalar least = in_dtype(Scalar(threshold), input.dtype());
    const bool all_over = std::trunc(threshold) < least.to_double();
    const Tensor kept = tenon::where(tenon::gt(input, least), input, in_dtype(Scalar(value), input.dtype()));
    return delivered(OpId::threshold, out, all_over ? tenon::clone(input) : kept);
  }
  const Scalar scalars[] = {Scalar(threshold), Scalar(value)};
  if (out == nullptr) return elementwise::unary(op_row(OpId::threshold), dtypes_of(OpId::threshold), input, scalars);
  elementwise::unary_into(op_row(OpId::threshold), dtypes_of(OpId::threshold), *out, input, scalars);
  return {};
}

Tensor gelu(Tensor* out, const Tensor& input, std::string_view approximate) {
  if (approximate == "none") return unary_to(OpId::gelu, out, input);
  if (approximate != "tanh") refuse("gelu", "approximate is '{}'; it may be 'none' or 'tanh'.", approximate);
  return unary_to(OpId::gelu_tanh, out, input);
}

Tensor signbit(Tensor* out, const Tensor& input) {
  if (input.defined() && !is_floating(input.dtype())) return binary_to(OpId::lt, out, input, Scalar(0));
  return unary_to(OpId::signbit, out, input);
}

Tensor isfinite(const Tensor& input) {
  require_defined("isfinite", "input", input);
  if (!is_floating(input.dtype())) return tenon::full_like(input, Scalar(true), DType::boolean);
  return tenon::lt(tenon::abs(input), Scalar(std::numeric_limits<double>::infinity()));
}

}  // namespace tenon::functors
