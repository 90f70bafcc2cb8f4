// Element-wise ops. Ops that ONNX lacks are written as core/ops and ep_api/scalar_ops.def define them.
#include <limits>

#include "core/ops/attributes.h"
#include "sdk/onnx/exporter/operators.h"

namespace tenon::onnx {
namespace {

using Name = std::string;

constexpr double kLog2 = 0.69314718055994530942, kLog10 = 2.30258509299404568402, kPi = 3.14159265358979323846;

bool is_whole(DType dtype) { return !is_floating(dtype); }

Name where(NodeWriter& n, const Name& condition, const Name& yes, const Name& no) {
  return n.add("Where", {condition, yes, no});
}
Name is_zero(NodeWriter& n, const Name& x) { return n.add("Equal", {x, n.number(0)}); }
// True for elements below 0 and for -0.
Name negative(NodeWriter& n, const Name& x) {
  return n.add("Less", {where(n, is_zero(n, x), n.add("Reciprocal", {x}), x), n.number(0)});
}
Name is_nan(NodeWriter& n, const Name& x) { return n.add("Not", {n.add("Equal", {x, x})}); }
Name truncated(NodeWriter& n, const Name& x) {
  return where(n, n.add("Less", {x, n.number(0)}), n.add("Ceil", {x}), n.add("Floor", {x}));
}
// Input `i` as bools.
Name truth(NodeWriter& n, size_t i) { return n.cast(n.in(i), n.has(i) ? n.dtype(i) : n.computed(), DType::boolean); }

double number(const NodeWriter& n, size_t scalar) { return n.scalar(scalar).to_double(); }

// `op` with the launch scalars as attributes.
void with_alpha(NodeWriter& n, std::string_view op) { n.give(n.add(op, {n.in(0)}, {{"alpha", number(n, 0)}})); }

void leaky_relu(NodeWriter& n) { with_alpha(n, "LeakyRelu"); }
void elu(NodeWriter& n) { with_alpha(n, "Elu"); }
void thresholded_relu(NodeWriter& n) { with_alpha(n, "ThresholdedRelu"); }
void selu(NodeWriter& n) { n.give(n.add("Selu", {n.in(0)}, {{"alpha", number(n, 0)}, {"gamma", number(n, 1)}})); }
void hard_sigmoid(NodeWriter& n) {
  n.give(n.add("HardSigmoid", {n.in(0)}, {{"alpha", number(n, 0)}, {"beta", number(n, 1)}}));
}
void shrink(NodeWriter& n) { n.give(n.add("Shrink", {n.in(0)}, {{"lambd", number(n, 0)}, {"bias", number(n, 1)}})); }
// ONNX has Celu for f32 only.
void celu(NodeWriter& n) {
  const Name scaled = n.add("Div", {n.in(0), n.number(number(n, 0))});
  n.give(n.add("Mul", {n.add("Elu", {scaled}, {{"alpha", 1.0}}), n.number(number(n, 0))}));
}

void relu(NodeWriter& n) {
  n.give(is_whole(n.dtype()) ? n.add("Max", {n.in(0), n.number(0)}) : n.add("Relu", {n.in(0)}));
}
// Integers are rounded already.
void rounded(NodeWriter& n, std::string_view op) { n.give(is_whole(n.dtype()) ? n.in(0) : n.add(op, {n.in(0)})); }
void floor(NodeWriter& n) { rounded(n, "Floor"); }
void ceil(NodeWriter& n) { rounded(n, "Ceil"); }
void round(NodeWriter& n) { rounded(n, "Round"); }
void trunc(NodeWriter& n) { n.give(is_whole(n.dtype()) ? n.in(0) : truncated(n, n.in(0))); }
void frac(NodeWriter& n) { n.give(n.add("Sub", {n.in(0), truncated(n, n.in(0))})); }

// (e^x + 1) tanh(x / 2), which is exact for small x.
void expm1(NodeWriter& n) {
  const Name half = n.add("Tanh", {n.add("Mul", {n.in(0), n.number(0.5)})});
  n.give(n.add("Mul", {half, n.add("Add", {n.add("Exp", {n.in(0)}), n.number(1)})}));
}
// 2 atanh(x / (x + 2)) for small x.
void log1p(NodeWriter& n) {
  const Name small = n.add("Less", {n.add("Abs", {n.in(0)}), n.number(0.5)});
  const Name x = where(n, small, n.in(0), n.number(0));
  const Name half = n.add("Atanh", {n.add("Div", {x, n.add("Add", {x, n.number(2)})})});
  const Name large = n.add("Log", {n.add("Add", {n.in(0), n.number(1)})});
  n.give(where(n, small, n.add("Mul", {half, n.number(2)}), large));
}
void log2(NodeWriter& n) { n.give(n.add("Div", {n.add("Log", {n.in(0)}), n.number(kLog2)})); }
void log10(NodeWriter& n) { n.give(n.add("Div", {n.add("Log", {n.in(0)}), n.number(kLog10)})); }
void exp2(NodeWriter& n) { n.give(n.add("Pow", {n.number(2), n.in(0)})); }
void log_sigmoid(NodeWriter& n) { n.give(n.add("Neg", {n.add("Softplus", {n.add("Neg", {n.in(0)})})})); }
void tanhshrink(NodeWriter& n) { n.give(n.add("Sub", {n.in(0), n.add("Tanh", {n.in(0)})})); }
void sinc(NodeWriter& n) {
  const Name zero = is_zero(n, n.in(0));
  const Name angle = n.add("Mul", {where(n, zero, n.number(1), n.in(0)), n.number(kPi)});
  n.give(where(n, zero, n.number(1), n.add("Div", {n.add("Sin", {angle}), angle})));
}
void gelu_tanh(NodeWriter& n) {
  const Name x = n.in(0);
  const Name cube = n.add("Mul", {x, n.add("Mul", {x, x})});
  const Name inner = n.add("Add", {x, n.add("Mul", {cube, n.number(0.044715)})});
  const Name bent = n.add("Tanh", {n.add("Mul", {inner, n.number(0.79788456080286535588)})});
  n.give(n.add("Mul", {n.add("Mul", {x, n.number(0.5)}), n.add("Add", {bent, n.number(1)})}));
}
void threshold(NodeWriter& n) {
  const Name kept = n.add("Or", {n.add("Greater", {n.in(0), n.number(number(n, 0))}), is_nan(n, n.in(0))});
  n.give(where(n, kept, n.in(0), n.number(number(n, 1))));
}
void nan_to_num(NodeWriter& n) {
  const double greatest = number(n, 1);
  const Name within = n.add("Clip", {n.in(0), n.number(-greatest), n.number(greatest)});
  n.give(where(n, is_nan(n, n.in(0)), n.number(number(n, 0)), within));
}
void huber(NodeWriter& n) {
  const Name size = n.add("Abs", {n.in(0)});
  const Name least = n.add("Min", {size, n.number(number(n, 0))});
  n.give(n.add("Mul", {least, n.add("Sub", {size, n.add("Mul", {least, n.number(0.5)})})}));
}
void logical_not(NodeWriter& n) { n.give(n.add("Not", {truth(n, 0)})); }
void isnan(NodeWriter& n) { n.give(is_nan(n, n.in(0))); }
void isinf(NodeWriter& n) {
  const Name size = n.add("Abs", {n.in(0)});
  n.give(is_whole(n.dtype()) ? n.add("Not", {n.add("Equal", {n.in(0), n.in(0)})})
                             : n.add("Equal", {size, n.number(std::numeric_limits<double>::infinity())}));
}
void signbit(NodeWriter& n) { n.give(negative(n, n.in(0))); }

// Bitwise ops on bools; ONNX has them for integers from opset 18 on.
void bits(NodeWriter& n, std::string_view of_bool) {
  if (n.computed() != DType::boolean) n.refuse("ONNX has it only for bool before opset 18.");
  n.give(n.add(of_bool, n.all()));
}
void bitwise_not(NodeWriter& n) { bits(n, "Not"); }
// Clears the sign bit of an i64 index: a negative index becomes 2^63 greater, for ops that do not count from the end.
void without_sign(NodeWriter& n, const Name& x) {
  const Name least = n.model().number(Scalar(std::numeric_limits<int64_t>::min()), DType::i64);
  n.give(where(n, n.add("Less", {x, n.number(0)}), n.add("Sub", {x, least}), x));
}
void bitwise_and(NodeWriter& n) {
  const bool scalar = n.computed() == DType::i64 && n.has(0) && !n.has(1);
  if (scalar && n.scalar(1) == Scalar(std::numeric_limits<int64_t>::max())) return without_sign(n, n.in(0));
  bits(n, "And");
}
void bitwise_or(NodeWriter& n) { bits(n, "Or"); }
void bitwise_xor(NodeWriter& n) { bits(n, "Xor"); }
void shift(NodeWriter& n, const char* direction) {
  const DTypeClass kind = dtype_info(n.computed()).type_class;
  if (kind != DTypeClass::UINT) n.refuse("ONNX shifts only unsigned integers.");
  n.give(n.add("BitShift", n.all(), {{"direction", Name(direction)}}));
}
void shift_left(NodeWriter& n) { shift(n, "LEFT"); }
void shift_right(NodeWriter& n) { shift(n, "RIGHT"); }

void logical(NodeWriter& n, std::string_view op) { n.give(n.add(op, {truth(n, 0), truth(n, 1)})); }
void logical_and(NodeWriter& n) { logical(n, "And"); }
void logical_or(NodeWriter& n) { logical(n, "Or"); }
void logical_xor(NodeWriter& n) { logical(n, "Xor"); }
void ne(NodeWriter& n) { n.give(n.add("Not", {n.add("Equal", n.all())})); }

// Remainder of division toward zero, with the sign of x.
Name fmod_of(NodeWriter& n) { return n.add("Mod", n.all(), {{"fmod", int64_t{1}}}); }
void fmod(NodeWriter& n) { n.give(fmod_of(n)); }
// Remainder with the sign of y. ONNX's Mod has this form for integers only.
Name mod_of(NodeWriter& n) {
  if (is_whole(n.computed())) return n.add("Mod", n.all());
  const Name left = fmod_of(n), y = n.in(1);
  const Name other_sign = n.add("Xor", {n.add("Less", {left, n.number(0)}), n.add("Less", {y, n.number(0)})});
  const Name moves = n.add("And", {other_sign, n.add("Not", {is_zero(n, left)})});
  return where(n, moves, n.add("Add", {left, y}), left);
}
void remainder(NodeWriter& n) { n.give(mod_of(n)); }
void floor_divide(NodeWriter& n) {
  if (is_whole(n.computed())) {
    n.give(n.add("Div", {n.add("Sub", {n.in(0), mod_of(n)}), n.in(1)}));
  } else {
    n.give(n.add("Floor", {n.add("Div", n.all())}));
  }
}

void prelu(NodeWriter& n) {
  const Name bent = n.add("Mul", n.all());
  n.give(where(n, n.add("GreaterOrEqual", {n.in(0), n.number(0)}), n.in(0), bent));
}
// max * sqrt((min / max)^2 + 1), so that nothing overflows.
void hypot(NodeWriter& n) {
  const Name a = n.add("Abs", {n.in(0)}), b = n.add("Abs", {n.in(1)});
  const Name most = n.add("Max", {a, b}), least = n.add("Min", {a, b});
  const Name same = n.add("Equal", {most, least});
  const Name ratio = where(n, same, n.number(1), n.add("Div", {least, where(n, same, n.number(1), most)}));
  n.give(n.add("Mul", {most, n.add("Sqrt", {n.add("Add", {n.add("Mul", {ratio, ratio}), n.number(1)})})}));
}
// max + log(1 + exp(-distance)), with exp and log to the base e^`unit`.
void log_add(NodeWriter& n, double unit) {
  const Name same = n.add("Equal", n.all());
  const Name distance = n.add("Abs", {n.add("Sub", n.all())});
  const Name scaled = n.add("Mul", {where(n, same, n.number(0), distance), n.number(-unit)});
  const Name more = n.add("Div", {n.add("Softplus", {scaled}), n.number(unit)});
  n.give(n.add("Add", {n.add("Max", n.all()), more}));
}
void logaddexp(NodeWriter& n) { log_add(n, 1); }
void logaddexp2(NodeWriter& n) { log_add(n, kLog2); }
void xlogy(NodeWriter& n) {
  const Name none = n.add("And", {is_zero(n, n.in(0)), n.add("Not", {is_nan(n, n.in(1))})});
  n.give(where(n, none, n.number(0), n.add("Mul", {n.in(0), n.add("Log", {n.in(1)})})));
}
void copysign(NodeWriter& n) {
  const Name size = n.add("Abs", {n.in(0)});
  n.give(where(n, negative(n, n.in(1)), n.add("Neg", {size}), size));
}
void heaviside(NodeWriter& n) {
  const Name step = where(n, n.add("Greater", {n.in(0), n.number(0)}), n.number(1), n.number(0));
  n.give(where(n, is_zero(n, n.in(0)), n.in(1), step));
}
void of_numbers(NodeWriter& n, std::string_view op) {
  const Name both = n.add(op, n.all());
  if (is_whole(n.computed())) return n.give(both);
  n.give(where(n, is_nan(n, n.in(0)), n.in(1), where(n, is_nan(n, n.in(1)), n.in(0), both)));
}
void fmax(NodeWriter& n) { of_numbers(n, "Max"); }
void fmin(NodeWriter& n) { of_numbers(n, "Min"); }

void clamp(NodeWriter& n) {
  if (!n.has(1) && !n.has(2)) return n.give(n.add("Clip", n.all()));
  n.give(n.add("Min", {n.add("Max", {n.in(0), n.in(1)}), n.in(2)}));
}
void fma(NodeWriter& n) { n.give(n.add("Add", {n.add("Mul", {n.in(0), n.in(1)}), n.in(2)})); }
void lerp(NodeWriter& n) {
  const Name distance = n.add("Sub", {n.in(1), n.in(0)}), weight = n.in(2);
  const Name from_start = n.add("Add", {n.in(0), n.add("Mul", {weight, distance})});
  const Name left = n.add("Sub", {n.number(1), weight});
  const Name from_end = n.add("Sub", {n.in(1), n.add("Mul", {distance, left})});
  n.give(where(n, n.add("Less", {n.add("Abs", {weight}), n.number(0.5)}), from_start, from_end));
}

void cast(NodeWriter& n) { n.give(n.cast(n.in(0), n.dtype(), n.attributes<CastAttributes>().dtype)); }
void same(NodeWriter& n) { n.give(n.in(0)); }

constexpr OperatorRow kElementwiseRows[] = {
    {.op = "abs", .onnx = "Abs"},
    {.op = "acos", .onnx = "Acos"},
    {.op = "acosh", .onnx = "Acosh"},
    {.op = "add", .onnx = "Add"},
    {.op = "asin", .onnx = "Asin"},
    {.op = "asinh", .onnx = "Asinh"},
    {.op = "atan", .onnx = "Atan"},
    {.op = "atanh", .onnx = "Atanh"},
    {.op = "bitwise_and", .onnx = "And", .write = bitwise_and},
    {.op = "bitwise_left_shift", .onnx = "BitShift", .write = shift_left},
    {.op = "bitwise_not", .onnx = "Not", .write = bitwise_not},
    {.op = "bitwise_or", .onnx = "Or", .write = bitwise_or},
    {.op = "bitwise_right_shift", .onnx = "BitShift", .write = shift_right},
    {.op = "bitwise_xor", .onnx = "Xor", .write = bitwise_xor},
    {.op = "cast", .onnx = "Cast", .write = cast},
    {.op = "ceil", .onnx = "Ceil", .write = ceil},
    {.op = "celu", .onnx = "Elu", .write = celu},
    {.op = "clamp", .onnx = "Clip", .write = clamp},
    {.op = "copysign", .onnx = "Where", .write = copysign},
    {.op = "cos", .onnx = "Cos"},
    {.op = "cosh", .onnx = "Cosh"},
    {.op = "div", .onnx = "Div"},
    {.op = "elu", .onnx = "Elu", .write = elu},
    {.op = "eq", .onnx = "Equal"},
    {.op = "erf", .onnx = "Erf"},
    {.op = "exp", .onnx = "Exp"},
    {.op = "exp2", .onnx = "Pow", .write = exp2},
    {.op = "expm1", .onnx = "Tanh", .write = expm1},
    {.op = "floor", .onnx = "Floor", .write = floor},
    {.op = "floor_divide", .onnx = "Div", .write = floor_divide},
    {.op = "fma", .onnx = "Add", .write = fma},
    {.op = "fmax", .onnx = "Max", .write = fmax},
    {.op = "fmin", .onnx = "Min", .write = fmin},
    {.op = "fmod", .onnx = "Mod", .write = fmod},
    {.op = "frac", .onnx = "Sub", .write = frac},
    {.op = "ge", .onnx = "GreaterOrEqual"},
    {.op = "gelu_tanh", .onnx = "Tanh", .write = gelu_tanh},
    {.op = "gt", .onnx = "Greater"},
    {.op = "hard_sigmoid", .onnx = "HardSigmoid", .write = hard_sigmoid},
    {.op = "hard_swish", .onnx = "HardSwish"},
    {.op = "heaviside", .onnx = "Where", .write = heaviside},
    {.op = "huber", .onnx = "Min", .write = huber},
    {.op = "hypot", .onnx = "Sqrt", .write = hypot},
    {.op = "isinf", .onnx = "Equal", .write = isinf},
    {.op = "isnan", .onnx = "Equal", .write = isnan},
    {.op = "le", .onnx = "LessOrEqual"},
    {.op = "leaky_relu", .onnx = "LeakyRelu", .write = leaky_relu},
    {.op = "lerp", .onnx = "Where", .write = lerp},
    {.op = "log", .onnx = "Log"},
    {.op = "log10", .onnx = "Log", .write = log10},
    {.op = "log1p", .onnx = "Atanh", .write = log1p},
    {.op = "log2", .onnx = "Log", .write = log2},
    {.op = "logaddexp", .onnx = "Softplus", .write = logaddexp},
    {.op = "logaddexp2", .onnx = "Softplus", .write = logaddexp2},
    {.op = "logical_and", .onnx = "And", .write = logical_and},
    {.op = "logical_not", .onnx = "Not", .write = logical_not},
    {.op = "logical_or", .onnx = "Or", .write = logical_or},
    {.op = "logical_xor", .onnx = "Xor", .write = logical_xor},
    {.op = "logsigmoid", .onnx = "Softplus", .write = log_sigmoid},
    {.op = "lt", .onnx = "Less"},
    {.op = "maximum", .onnx = "Max"},
    {.op = "minimum", .onnx = "Min"},
    {.op = "mul", .onnx = "Mul"},
    {.op = "nan_to_num_within", .onnx = "Clip", .write = nan_to_num},
    {.op = "ne", .onnx = "Equal", .write = ne},
    {.op = "neg", .onnx = "Neg"},
    {.op = "pow", .onnx = "Pow"},
    {.op = "prelu", .onnx = "Where", .write = prelu},
    {.op = "reciprocal", .onnx = "Reciprocal"},
    {.op = "relu", .onnx = "Relu", .write = relu},
    {.op = "remainder", .onnx = "Mod", .write = remainder},
    {.op = "round", .onnx = "Round", .write = round},
    {.op = "selu", .onnx = "Selu", .write = selu},
    {.op = "shrink", .onnx = "Shrink", .write = shrink},
    {.op = "sigmoid", .onnx = "Sigmoid"},
    {.op = "sign", .onnx = "Sign"},
    {.op = "signbit", .onnx = "Less", .write = signbit},
    {.op = "sin", .onnx = "Sin"},
    {.op = "sinc", .onnx = "Sin", .write = sinc},
    {.op = "sinh", .onnx = "Sinh"},
    {.op = "softplus", .onnx = "Softplus"},
    {.op = "softsign", .onnx = "Softsign"},
    {.op = "sqrt", .onnx = "Sqrt"},
    {.op = "sub", .onnx = "Sub"},
    {.op = "tan", .onnx = "Tan"},
    {.op = "tanh", .onnx = "Tanh"},
    {.op = "tanhshrink", .onnx = "Tanh", .write = tanhshrink},
    {.op = "threshold", .onnx = "Where", .write = threshold},
    {.op = "thresholded_relu", .onnx = "ThresholdedRelu", .write = thresholded_relu},
    {.op = "to", .onnx = "Identity", .write = same},
    {.op = "trunc", .onnx = "Floor", .write = trunc},
    {.op = "where", .onnx = "Where"},
    {.op = "xlogy", .onnx = "Log", .write = xlogy},
};

}  // namespace

std::span<const OperatorRow> elementwise_rows() { return kElementwiseRows; }

}  // namespace tenon::onnx
