// Operators that work element by element.
#include <limits>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/tensors/tensor_data.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

template <Tensor (*op)(const Tensor&)>
TensorList unary(NodeContext& n) {
  return {op(n.input(0))};
}

// Both arguments have the same dtype in ONNX.
template <Tensor (*op)(const Tensor&, const Tensor&)>
TensorList binary(NodeContext& n) {
  if (n.dtype(0) != n.dtype(1)) {
    n.unsupported(
        fmt::format("its inputs have different types, {} and {}", dtype_name(n.dtype(0)), dtype_name(n.dtype(1))));
  }
  return {op(n.input(0), n.input(1))};
}

// The op returns 0 for NaN; ONNX wants NaN.
Tensor sign_or_nan(const Tensor& x) { return is_floating(x.dtype()) ? where(isnan(x), x, sign(x)) : sign(x); }

Tensor add2(const Tensor& a, const Tensor& b) { return add(a, b); }
Tensor sub2(const Tensor& a, const Tensor& b) { return sub(a, b); }
Tensor mul2(const Tensor& a, const Tensor& b) { return mul(a, b); }
Tensor div2(const Tensor& a, const Tensor& b) { return is_floating(a.dtype()) ? div(a, b) : div(a, b, "trunc"); }

// Takes any number of inputs, two at a time.
template <Tensor (*op)(const Tensor&, const Tensor&)>
TensorList variadic(NodeContext& n) {
  Tensor result = n.input(0);
  for (size_t i = 1; i < n.input_count(); ++i) result = op(result, n.input(i));
  return {result};
}

TensorList mean_of_inputs(NodeContext& n) {
  const Tensor sum = variadic<add2>(n)[0];
  return {mul(sum, Scalar(1.0 / static_cast<double>(n.input_count())))};
}

// The result has the type of the base. An integer base with a float power computes in f64.
TensorList translate_pow(NodeContext& n) {
  const DType base = n.dtype(0), exponent = n.dtype(1);
  if (base == exponent) return {tenon::pow(n.input(0), n.input(1))};
  if (is_floating(base)) return {tenon::pow(n.input(0), cast(n.input(1), base))};
  if (!is_floating(exponent)) return {tenon::pow(n.input(0), cast(n.input(1), base))};
  return {cast(tenon::pow(cast(n.input(0), DType::f64), cast(n.input(1), DType::f64)), base)};
}

TensorList translate_mod(NodeContext& n) {
  if (n.flag("fmod", false)) return {tenon::fmod(n.input(0), n.input(1))};
  if (is_floating(n.dtype(0)) && n.version() < 28) n.invalid("floats need the attribute fmod to be 1");
  return {remainder(n.input(0), n.input(1))};
}

std::string bit_shift_why_not(const Node& node) {
  const auto direction = node.attributes.find("direction");
  const bool known =
      direction != node.attributes.end() && (direction->second.s == "LEFT" || direction->second.s == "RIGHT");
  return known ? std::string() : "its direction must be LEFT or RIGHT.";
}

TensorList bit_shift(NodeContext& n) {
  const bool left = n.text("direction", "") == "LEFT";
  return {left ? bitwise_left_shift(n.input(0), n.input(1)) : bitwise_right_shift(n.input(0), n.input(1))};
}

TensorList is_inf(NodeContext& n) {
  const bool negative = n.flag("detect_negative", true), positive = n.flag("detect_positive", true);
  const Tensor& x = n.input(0);
  if (negative && positive) return {isinf(x)};
  const double infinity = std::numeric_limits<double>::infinity();
  if (positive) return {eq(x, Scalar(infinity))};
  return {negative ? eq(x, Scalar(-infinity)) : logical_and(isinf(x), Scalar(false))};
}

TensorList leaky(NodeContext& n) { return {leaky_relu(n.input(0), n.number("alpha", 0.01))}; }
TensorList translate_elu(NodeContext& n) { return {elu(n.input(0), n.number("alpha", 1.0))}; }
TensorList translate_celu(NodeContext& n) { return {celu(n.input(0), n.number("alpha", 1.0))}; }
TensorList translate_selu(NodeContext& n) {
  return {selu(n.input(0), n.number("alpha", 1.67326319217681884765625), n.number("gamma", 1.05070102214813232421875))};
}
TensorList translate_hard_sigmoid(NodeContext& n) {
  return {hard_sigmoid(n.input(0), n.number("alpha", 0.2), n.number("beta", 0.5))};
}
// NaN is not above alpha, so the result is 0. Tenon's own thresholded_relu keeps NaN, like PyTorch.
TensorList thresholded(NodeContext& n) {
  const Tensor& x = n.input(0);
  return {where(gt(x, Scalar(n.number("alpha", 1.0))), x, Scalar(0.0))};
}

// Integers are computed in floats, and the result is cast. NaN is on neither side, so the result is 0.
TensorList translate_shrink(NodeContext& n) {
  const DType dtype = n.dtype(0);
  const Tensor x = is_floating(dtype) ? n.input(0) : cast(n.input(0), DType::f64);
  const Tensor shrunk = shrink(x, n.number("lambd", 0.5), n.number("bias", 0.0));
  return {cast(where(isnan(x), Scalar(0.0), shrunk), dtype)};
}
TensorList translate_gelu(NodeContext& n) { return {gelu(n.input(0), n.text("approximate", "none"))}; }

// The slope broadcasts to x only. An unsigned element is never below 0, so the slope does not matter.
TensorList translate_prelu(NodeContext& n) {
  const Tensor &x = n.input(0), &slope = n.input(1);
  // Aligns the slope at the last axis; the op would align a list at axis 1.
  if (dtype_info(x.dtype()).type_class != DTypeClass::UINT)
    return {prelu(x, x.rank() > 1 && slope.rank() == 1 ? unsqueeze(slope, 0) : slope)};
  return {where(ge(x, Scalar(0)), x, slope)};
}

// Version 9 takes integers too; they are computed in floats.
TensorList translate_erf(NodeContext& n) { return {cast(erf(n.input(0)), n.dtype(0))}; }

Tensor kept_within(const Tensor& x, const Tensor& low, const Tensor& high) {
  if (!low.defined() && !high.defined()) return x;
  return clamp(x, low, high);
}

TensorList clip_inputs(NodeContext& n) { return {kept_within(n.input(0), n.optional(1), n.optional(2))}; }
TensorList clip_attributes(NodeContext& n) {
  const Tensor& x = n.input(0);
  const Attribute* low = n.find("min");
  const Attribute* high = n.find("max");
  if (low == nullptr && high == nullptr) return {x};
  std::optional<Scalar> min, max;
  if (low != nullptr) min = Scalar(low->f);
  if (high != nullptr) max = Scalar(high->f);
  return {clamp(x, min, max)};
}

TensorList translate_where(NodeContext& n) { return {where(n.input(0), n.input(1), n.input(2))}; }

DType target_type(NodeContext& n) {
  const auto to = static_cast<int32_t>(n.require("to", Attribute::Kind::integer).i);
  const DType dtype = dtype_of_onnx(to);
  if (dtype == DType::none)
    n.unsupported(fmt::format("it casts to {}, an element type that Tenon does not have", onnx_type_name(to)));
  return dtype;
}

// Reads the same bytes as another type of the same size. On the host, since no op does this in a program.
TensorList bit_cast(NodeContext& n) {
  const DType dtype = target_type(n), from = n.dtype(0);
  if (dtype_info(dtype).bits != dtype_info(from).bits)
    n.invalid(fmt::format("{} does not have the bits of {}", dtype_name(dtype), dtype_name(from)));
  const Tensor x = contiguous(n.known_input(0));
  std::string bytes(static_cast<size_t>(x.bytes()), '\0');
  x.copy_to_host(bytes.data());
  if (dtype == DType::boolean) {
    for (char& byte : bytes) byte = byte != 0;
  }
  return {Tensor::copy_from_host(bytes.data(), x.dims(), dtype, n.device())};
}

std::string cast_why_not(const Node& node) {
  const auto to = node.attributes.find("to");
  if (to == node.attributes.end() || to->second.kind != Attribute::Kind::integer)
    return "its attribute 'to' is missing.";
  const auto type = static_cast<int32_t>(to->second.i);
  if (dtype_of_onnx(type) != DType::none) return {};
  return fmt::format("it casts to {}, an element type that Tenon does not have.", onnx_type_name(type));
}

// Rounds to powers of two. `round` is up, down or nearest (ties go up).
Tensor to_powers_of_two(NodeContext& n, const Tensor& x, const std::string& round, bool saturates) {
  constexpr double kLeast = 0x1p-127, kMost = 0x1p127;
  if (round != "up" && round != "down" && round != "nearest")
    n.invalid(fmt::format("its round_mode is '{}'; it must be up, down or nearest", round));
  Tensor wide = cast(x, DType::f64);
  if (round != "nearest") {
    const Tensor power = exp2(round == "up" ? ceil(log2(wide)) : floor(log2(wide)));
    wide = where(gt(wide, Scalar(0.0)), power, wide);
  }
  if (saturates) wide = clamp(wide, Scalar(kLeast), Scalar(kMost));
  return cast(wide, DType::f8e8m0);
}

// A cast to bool is true for elements other than 0. Integers of 4 and 2 bits keep the low bits. A cast to f8 saturates
// unless the node says otherwise.
Tensor convert(NodeContext& n, DType dtype) {
  const Tensor& x = n.input(0);
  if (x.dtype() == dtype) return x;
  if (dtype == DType::boolean) return ne(dtype_size(x.dtype()) == 0 ? cast(x, DType::f32) : x, Scalar(0));
  const bool saturates = n.flag("saturate", true);
  if (dtype == DType::f8e8m0) return to_powers_of_two(n, x, n.text("round_mode", "up"), saturates);
  const bool small = is_integer(dtype) && dtype_size(dtype) == 0;
  if (small && is_floating(x.dtype())) return cast(cast(x, DType::i32), dtype);
  const double most = greatest_of(dtype);
  if (most == 0 || !is_floating(x.dtype()) || !saturates) return cast(x, dtype);
  return cast(clamp(x.dtype() == DType::f64 ? x : cast(x, DType::f32), Scalar(-most), Scalar(most)), dtype);
}

TensorList translate_cast(NodeContext& n) { return {convert(n, target_type(n))}; }
TensorList cast_like(NodeContext& n) { return {convert(n, n.dtype(1))}; }

constexpr Translator kElementwiseRows[] = {
    {.op_type = "Abs", .since = 1, .translate = unary<abs>},
    {.op_type = "Acos", .since = 7, .translate = unary<acos>},
    {.op_type = "Acosh", .since = 9, .translate = unary<acosh>},
    {.op_type = "Add", .since = 7, .translate = binary<add2>},
    {.op_type = "And", .since = 7, .translate = binary<logical_and>},
    {.op_type = "Asin", .since = 7, .translate = unary<asin>},
    {.op_type = "Asinh", .since = 9, .translate = unary<asinh>},
    {.op_type = "Atan", .since = 7, .translate = unary<atan>},
    {.op_type = "Atanh", .since = 9, .translate = unary<atanh>},
    {.op_type = "BitCast", .since = 26, .translate = bit_cast, .why_not = cast_why_not},
    {.op_type = "BitShift", .since = 11, .translate = bit_shift, .why_not = bit_shift_why_not},
    {.op_type = "BitwiseAnd", .since = 18, .translate = binary<bitwise_and>},
    {.op_type = "BitwiseNot", .since = 18, .translate = unary<bitwise_not>},
    {.op_type = "BitwiseOr", .since = 18, .translate = binary<bitwise_or>},
    {.op_type = "BitwiseXor", .since = 18, .translate = binary<bitwise_xor>},
    {.op_type = "Cast", .since = 6, .translate = translate_cast, .why_not = cast_why_not},
    {.op_type = "CastLike", .since = 15, .translate = cast_like},
    {.op_type = "Ceil", .since = 1, .translate = unary<ceil>},
    {.op_type = "Celu", .since = 12, .translate = translate_celu},
    {.op_type = "Clip", .since = 1, .until = 10, .translate = clip_attributes},
    {.op_type = "Clip", .since = 11, .translate = clip_inputs},
    {.op_type = "Cos", .since = 7, .translate = unary<cos>},
    {.op_type = "Cosh", .since = 9, .translate = unary<cosh>},
    {.op_type = "Div", .since = 7, .translate = binary<div2>},
    {.op_type = "Elu", .since = 1, .translate = translate_elu},
    {.op_type = "Equal", .since = 7, .translate = binary<eq>},
    {.op_type = "Erf", .since = 9, .translate = translate_erf},
    {.op_type = "Exp", .since = 1, .translate = unary<exp>},
    {.op_type = "Floor", .since = 1, .translate = unary<floor>},
    {.op_type = "Gelu", .since = 20, .translate = translate_gelu},
    {.op_type = "Greater", .since = 7, .translate = binary<gt>},
    {.op_type = "GreaterOrEqual", .since = 12, .translate = binary<ge>},
    {.op_type = "HardSigmoid", .since = 1, .translate = translate_hard_sigmoid},
    {.op_type = "HardSwish", .since = 14, .translate = unary<hard_swish>},
    {.op_type = "IsInf", .since = 10, .translate = is_inf},
    {.op_type = "IsNaN", .since = 9, .translate = unary<isnan>},
    {.op_type = "LeakyRelu", .since = 1, .translate = leaky},
    {.op_type = "Less", .since = 7, .translate = binary<lt>},
    {.op_type = "LessOrEqual", .since = 12, .translate = binary<le>},
    {.op_type = "Log", .since = 1, .translate = unary<log>},
    {.op_type = "Max", .since = 8, .translate = variadic<maximum>},
    {.op_type = "Mean", .since = 8, .translate = mean_of_inputs, .wide = true},
    {.op_type = "Min", .since = 8, .translate = variadic<minimum>},
    {.op_type = "Mish", .since = 18, .translate = unary<mish>},
    {.op_type = "Mod", .since = 10, .translate = translate_mod},
    {.op_type = "Mul", .since = 7, .translate = binary<mul2>},
    {.op_type = "Neg", .since = 1, .translate = unary<neg>},
    {.op_type = "Not", .since = 1, .translate = unary<logical_not>},
    {.op_type = "Or", .since = 7, .translate = binary<logical_or>},
    {.op_type = "PRelu", .since = 7, .translate = translate_prelu},
    {.op_type = "Pow", .since = 7, .translate = translate_pow},
    {.op_type = "Reciprocal", .since = 1, .translate = unary<reciprocal>},
    {.op_type = "Relu", .since = 1, .translate = unary<relu>},
    {.op_type = "Round", .since = 11, .translate = unary<round>},
    {.op_type = "Selu", .since = 1, .translate = translate_selu},
    {.op_type = "Shrink", .since = 9, .translate = translate_shrink},
    {.op_type = "Sigmoid", .since = 1, .translate = unary<sigmoid>},
    {.op_type = "Sign", .since = 9, .translate = unary<sign_or_nan>},
    {.op_type = "Sin", .since = 7, .translate = unary<sin>},
    {.op_type = "Sinh", .since = 9, .translate = unary<sinh>},
    {.op_type = "Softplus", .since = 1, .translate = unary<softplus>},
    {.op_type = "Softsign", .since = 1, .translate = unary<softsign>},
    {.op_type = "Sqrt", .since = 1, .translate = unary<sqrt>},
    {.op_type = "Sub", .since = 7, .translate = binary<sub2>},
    {.op_type = "Sum", .since = 8, .translate = variadic<add2>, .wide = true},
    {.op_type = "Tan", .since = 7, .translate = unary<tan>},
    {.op_type = "Tanh", .since = 1, .translate = unary<tanh>},
    {.op_type = "ThresholdedRelu", .since = 10, .translate = thresholded},
    {.op_type = "Where", .since = 9, .translate = translate_where},
    {.op_type = "Xor", .since = 7, .translate = binary<logical_xor>},
};

}  // namespace

std::span<const Translator> elementwise_translators() { return kElementwiseRows; }

}  // namespace tenon::onnx
