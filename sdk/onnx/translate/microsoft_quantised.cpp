// Operators of com.microsoft on quantised tensors, written as dequantize_linear, the op, and quantize_linear. A pass
// turns these into one quantised op if there is one (core/graph/passes/quantised.cpp).
#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/layers.h"
#include "sdk/onnx/translate/microsoft.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

// Dequantises input `i`; its scale and zero point are the next inputs.
Tensor real(NodeContext& n, size_t i) { return dequantize_linear(n.input(i), n.input(i + 1), n.optional(i + 2), -1); }

// Quantises `x` with the scale in input `scale` and the zero point after it. The zero point, or else input 0, decides
// the dtype.
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
// Before opset 13 a softmax takes all axes from `axis` on as one.
TensorList linear_softmax(NodeContext& n) {
  const Tensor x = real(n, 0);
  const int64_t axis = n.axis(-1, x.rank());
  if (n.integer("opset", 13) >= 13 || axis + 1 == x.rank()) return as_numbers(n, softmax(x, axis), 3);
  const Tensor rows = reshape(x, SizeList{n.product(0, 0, axis), n.product(0, axis, x.rank())});
  return as_numbers(n, reshape(softmax(rows, -1), SizeList(sizes(x))), 3);
}

TensorList linear_where(NodeContext& n) { return as_numbers(n, where(n.input(0), real(n, 1), real(n, 4)), 7); }

// Pools input 0, whose channels may be the last axis.
TensorList pooled(NodeContext& n, Tensor (*pool)(NodeContext& n, const Tensor& x)) {
  if (n.rank(0) < 3) n.invalid(fmt::format("its input has rank {}; it must be at least 3", n.rank(0)));
  const bool last = n.flag("channels_last", false);
  const Tensor x = real(n, 0), y = pool(n, last ? channels_first(x) : x);
  return as_numbers(n, last ? channels_last(y) : y, 3);
}

TensorList linear_average_pool(NodeContext& n) { return pooled(n, average_pool_of_node); }
TensorList linear_global_average_pool(NodeContext& n) {
  return pooled(n, [](NodeContext&, const Tensor& x) {
    std::vector<int64_t> axes;
    for (int32_t axis = 2; axis < x.rank(); ++axis) axes.push_back(axis);
    return mean(x, axes, true);
  });
}

TensorList channels_last_max_pool(NodeContext& n) {
  if (n.rank(0) < 3) n.invalid(fmt::format("its input has rank {}; it must be at least 3", n.rank(0)));
  return {channels_last(max_pool_of_node(n, channels_first(n.input(0))))};
}

// Inputs: scale and zero point of the result; then numbers, scale and zero point of each part.
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

// The bias has the scale of the product. Without a scale for the result, the result is real.
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

// Multiplies quantised `a` by the matrix in input `b`, with the given scales and zero points.
Tensor scaled_product(NodeContext& n, const Tensor& a, const Tensor& a_scale, const Tensor& a_zero, size_t b,
                      const Tensor& b_scale, const Tensor& b_zero, const Tensor& bias) {
  if (a.rank() < 2 || n.rank(b) < 2)
    n.invalid(fmt::format("a and b have shapes {} and {}; both need rank 2 or more", a.dims(), n.dims(b)));
  return quantized_matmul(a, a_scale, a_zero, n.input(b), b_scale, b_zero, bias);
}

TensorList integer_to_float(NodeContext& n) {
  return {scaled_product(n, n.input(0), n.input(2), n.optional(4), 1, n.input(3), n.optional(5), n.optional(6))};
}

TensorList dynamic_product(NodeContext& n) {
  const QuantizedTensor a = quantized_over_range(n.input(0));
  return {scaled_product(n, a.value, a.scale, a.zero_point, 1, n.input(2), n.optional(3), n.optional(4))};
}

constexpr Translator kMicrosoftQuantisedRows[] = {
    {.domain = kMicrosoft, .op_type = "DynamicQuantizeMatMul", .since = 1, .translate = dynamic_product},
    {.domain = kMicrosoft, .op_type = "MatMulIntegerToFloat", .since = 1, .translate = integer_to_float},
    {.domain = kMicrosoft, .op_type = "NhwcMaxPool", .since = 1, .translate = channels_last_max_pool},
    {.domain = kMicrosoft, .op_type = "QGemm", .since = 1, .translate = gemm},
    {.domain = kMicrosoft, .op_type = "QLinearAdd", .since = 1, .translate = linear_add},
    {.domain = kMicrosoft, .op_type = "QLinearAveragePool", .since = 1, .translate = linear_average_pool},
    {.domain = kMicrosoft, .op_type = "QLinearConcat", .since = 1, .translate = linear_concat},
    {.domain = kMicrosoft, .op_type = "QLinearGlobalAveragePool", .since = 1, .translate = linear_global_average_pool},
    {.domain = kMicrosoft, .op_type = "QLinearLeakyRelu", .since = 1, .translate = linear_leaky_relu},
    {.domain = kMicrosoft, .op_type = "QLinearMul", .since = 1, .translate = linear_mul},
    {.domain = kMicrosoft, .op_type = "QLinearSigmoid", .since = 1, .translate = linear_sigmoid},
    {.domain = kMicrosoft, .op_type = "QLinearSoftmax", .since = 1, .translate = linear_softmax},
    {.domain = kMicrosoft, .op_type = "QLinearWhere", .since = 1, .translate = linear_where},
};

}  // namespace

std::span<const Translator> microsoft_quantised_translators() { return kMicrosoftQuantisedRows; }

}  // namespace tenon::onnx
