// Operators of com.microsoft on quantised tensors: written as the op between dequantize_linear and quantize_linear,
// which a pass turns into one on numbers where there is one (core/graph/passes/quantised.cpp).
#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/layers.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

// The reals of input `i`, whose scale and zero point follow it.
Tensor real(NodeContext& n, size_t i) { return dequantize_linear(n.input(i), n.input(i + 1), n.optional(i + 2), -1); }

// `x` as numbers of the scale in input `scale`; the zero point, which follows, says their dtype, or input 0 does.
TensorList as_numbers(NodeContext& n, const Tensor& x, size_t scale) {
  const DType dtype = n.has(scale + 1) ? n.dtype(scale + 1) : n.dtype(0);
  return {quantize_linear(x, n.input(scale), n.optional(scale + 1), -1, 0, dtype)};
}

TensorList linear_add(NodeContext& n) { return as_numbers(n, add(real(n, 0), real(n, 3)), 6); }
TensorList linear_mul(NodeContext& n) { return as_numbers(n, mul(real(n, 0), real(n, 3)), 6); }
TensorList linear_sigmoid(NodeContext& n) { return as_numbers(n, sigmoid(real(n, 0)), 3); }
TensorList linear_leaky_relu(NodeContext& n) {
  return as_numbers(n, leaky_relu(real(n, 0), n.number("alpha", 0.01)), 3);
}
TensorList linear_softmax(NodeContext& n) {
  const int64_t opset = n.integer("opset", 13);
  if (opset < 13) n.unsupported(fmt::format("it is a softmax of opset {}; 13 and above are translated", opset));
  return as_numbers(n, softmax(real(n, 0), n.integer("axis", -1)), 3);
}

std::string pool_why_not(const Node& node) {
  const auto found = node.attributes.find("channels_last");
  const bool last = found != node.attributes.end() && found->second.i != 0;
  return last ? "its channels are last." : std::string();
}

TensorList linear_global_average_pool(NodeContext& n) {
  const Tensor x = real(n, 0);
  if (x.rank() < 3) n.invalid(fmt::format("its input has rank {}; it must be 3 at least", x.rank()));
  std::vector<int64_t> axes;
  for (int32_t axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
  return as_numbers(n, mean(x, axes, true), 3);
}

TensorList linear_average_pool(NodeContext& n) {
  if (n.rank(0) < 3) n.invalid(fmt::format("its input has rank {}; it must be 3 at least", n.rank(0)));
  return as_numbers(n, average_pool_of_node(n, real(n, 0)), 3);
}

// Scale and zero point of the result, then of each part the numbers, their scale and zero point.
TensorList linear_concat(NodeContext& n) {
  const size_t given = n.input_count();
  if (given < 5 || (given - 2) % 3 != 0) {
    n.invalid(fmt::format("it has {} inputs; two and three for each part are possible", given));
  }
  const DType dtype = n.dtype(1);
  TensorList parts;
  for (size_t i = 2; i < given; i += 3) {
    if (n.dtype(i + 1) != DType::f32 || n.dtype(i) != dtype || n.dtype(i + 2) != dtype) {
      n.invalid(fmt::format("inputs {} to {} are {}, {} and {}; numbers, scale and zero point must be {}, f32 and {}",
                            i, i + 2, dtype_name(n.dtype(i)), dtype_name(n.dtype(i + 1)), dtype_name(n.dtype(i + 2)),
                            dtype_name(dtype), dtype_name(dtype)));
    }
    parts.push_back(real(n, i));
  }
  const Tensor all = parts.size() == 1 ? parts[0] : concat(parts, n.require("axis", Attribute::Kind::integer).i);
  return {quantize_linear(all, n.input(0), n.input(1), -1, 0, dtype)};
}

Tensor turned(const Tensor& x, bool turns) { return turns ? t(x) : x; }

// The bias is in steps of the product. Without a scale of the result that is real.
TensorList gemm(NodeContext& n) {
  if (n.number("alpha", 1.0) != 1.0) n.unsupported(fmt::format("alpha is {}; 1 is translated", n.number("alpha", 1.0)));
  const bool turns = n.flag("transB", false);
  const Tensor b = dequantize_linear(n.input(3), n.input(4), n.optional(5), turns ? 0 : 1);
  Tensor y = matmul(turned(real(n, 0), n.flag("transA", false)), turned(b, turns));
  if (n.has(6)) {
    const Tensor step = mul(n.input(1), n.input(4)), bias = mul(cast(n.input(6), DType::f32), step);
    y = add(y, bias.rank() == 2 && bias.dim(0) == 1 ? reshape(bias, {bias.dim(1)}) : bias);
  }
  return n.has(7) ? as_numbers(n, y, 7) : TensorList{y};
}

// The product of numbers by the matrix in input `b`, whose scale and zero point are given.
Tensor scaled_product(NodeContext& n, const Tensor& a, const Tensor& a_scale, const Tensor& a_zero, size_t b,
                      const Tensor& b_scale, const Tensor& b_zero, const Tensor& bias) {
  if (a.rank() < 2 || n.rank(b) < 2) n.invalid(fmt::format("a and b have shapes {} and {}", a.dims(), n.dims(b)));
  return quantized_matmul(a, a_scale, a_zero, n.input(b), b_scale, b_zero, bias);
}

TensorList integer_to_float(NodeContext& n) {
  return {scaled_product(n, n.input(0), n.input(2), n.optional(4), 1, n.input(3), n.optional(5), n.optional(6))};
}

// a is quantised to u8 over its own range.
TensorList dynamic_product(NodeContext& n) {
  const Tensor& a = n.input(0);
  const Tensor low = minimum(amin(a), Scalar(0.0)), high = maximum(amax(a), Scalar(0.0));
  const Tensor scale = div(sub(high, low), Scalar(255.0));
  const Tensor zero = cast(round(clamp(div(neg(low), scale), Scalar(0.0), Scalar(255.0))), DType::u8);
  const Tensor numbers = quantize_linear(a, scale, zero);
  return {scaled_product(n, numbers, scale, zero, 1, n.input(2), n.optional(3), n.optional(4))};
}

constexpr Translator kRows[] = {
    of_domain(kDomain, "DynamicQuantizeMatMul", 1, dynamic_product),
    of_domain(kDomain, "MatMulIntegerToFloat", 1, integer_to_float),
    of_domain(kDomain, "QGemm", 1, gemm),
    of_domain(kDomain, "QLinearAdd", 1, linear_add),
    of_domain(kDomain, "QLinearAveragePool", 1, linear_average_pool, pool_why_not),
    of_domain(kDomain, "QLinearConcat", 1, linear_concat),
    of_domain(kDomain, "QLinearGlobalAveragePool", 1, linear_global_average_pool, pool_why_not),
    of_domain(kDomain, "QLinearLeakyRelu", 1, linear_leaky_relu),
    of_domain(kDomain, "QLinearMul", 1, linear_mul),
    of_domain(kDomain, "QLinearSigmoid", 1, linear_sigmoid),
    of_domain(kDomain, "QLinearSoftmax", 1, linear_softmax),
};

}  // namespace

std::span<const Translator> microsoft_quantised_translators() { return kRows; }

}  // namespace tenon::onnx
