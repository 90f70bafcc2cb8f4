// Quantisation, computed in floats: f32 holds integers up to 2^24 exactly.
#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

// A scale or zero point: one number, or one per index along the attribute `axis`.
Tensor along_axis(NodeContext& n, const Tensor& value) {
  if (value.elements() == 1) return reshape(value, Dims());
  const int64_t axis = n.axis(1, n.rank(0));
  Dims shape = Dims::filled(n.rank(0), 1);
  if (value.rank() != 1 || !(n.sizes(0)[axis] == value.elements())) {
    n.invalid(
        fmt::format("a scale or zero point of shape {} does not fit axis {} of {}", value.dims(), axis, n.dims(0)));
  }
  shape[axis] = value.elements();
  return reshape(value, shape);
}

Tensor quantize(const Tensor& x, const Tensor& scale, const Tensor& zero, DType dtype) {
  const bool is_signed = dtype == DType::i8;
  const Tensor steps = round(div(x, scale));
  const Tensor moved = zero.defined() ? add(steps, cast(zero, x.dtype())) : steps;
  return cast(clamp(moved, Scalar(is_signed ? -128 : 0), Scalar(is_signed ? 127 : 255)), dtype);
}

void check_quantized(NodeContext& n, DType dtype) {
  if (dtype != DType::i8 && dtype != DType::u8)
    n.unsupported(fmt::format("it quantises to {}; i8 and u8 are translated", dtype_name(dtype)));
}

TensorList quantize_linear(NodeContext& n) {
  const Tensor zero = n.has(2) ? along_axis(n, n.input(2)) : Tensor();
  const DType dtype = n.has(2) ? n.dtype(2) : DType::u8;
  check_quantized(n, dtype);
  return {quantize(cast(n.input(0), DType::f32), along_axis(n, n.input(1)), zero, dtype)};
}

// x - zero point, in f32.
Tensor centred(const Tensor& x, const Tensor& zero) {
  const Tensor floats = cast(x, DType::f32);
  return zero.defined() ? sub(floats, cast(zero, DType::f32)) : floats;
}

TensorList dequantize_linear(NodeContext& n) {
  const Tensor zero = n.has(2) ? along_axis(n, n.input(2)) : Tensor();
  return {mul(centred(n.input(0), zero), along_axis(n, n.input(1)))};
}

// u8 over the range of x, extended to include 0.
TensorList dynamic_quantize_linear(NodeContext& n) {
  const Tensor& x = n.input(0);
  const Tensor low = minimum(amin(x), Scalar(0.0)), high = maximum(amax(x), Scalar(0.0));
  const Tensor scale = div(sub(high, low), Scalar(255.0));
  const Tensor zero = cast(round(clamp(div(neg(low), scale), Scalar(0.0), Scalar(255.0))), DType::u8);
  return {quantize(x, scale, zero, DType::u8), scale, zero};
}

// One zero point per row of a becomes a column.
Tensor row_zero(const Tensor& zero) {
  return zero.defined() && zero.rank() == 1 && zero.elements() > 1 ? unsqueeze(zero, 1) : zero;
}

void check_exact(NodeContext& n, int64_t terms) {
  // A product is below 2^16, so a sum of so many products is below 2^24.
  if (terms > 256) n.unsupported(fmt::format("it sums {} products of integers; at most 256 are exact here", terms));
}

TensorList matmul_integer(NodeContext& n) {
  check_exact(n, n.rank(0) == 0 ? 0 : bound(n.sizes(0).back(), "MatMulInteger"));
  return {cast(matmul(centred(n.input(0), row_zero(n.optional(2))), centred(n.input(1), n.optional(3))), DType::i32)};
}

TensorList qlinear_matmul(NodeContext& n) {
  check_exact(n, n.rank(0) == 0 ? 0 : bound(n.sizes(0).back(), "QLinearMatMul"));
  check_quantized(n, n.dtype(7));
  const Tensor product = matmul(centred(n.input(0), row_zero(n.input(2))), centred(n.input(3), n.input(5)));
  const Tensor scale = div(mul(row_zero(n.input(1)), n.input(4)), n.input(6));
  return {quantize(mul(product, scale), full({}, Scalar(1.0), DType::f32, n.device()), n.input(7), n.dtype(7))};
}

constexpr Translator kRows[] = {
    {"DequantizeLinear", 10, dequantize_linear}, {"DynamicQuantizeLinear", 11, dynamic_quantize_linear},
    {"MatMulInteger", 10, matmul_integer},       {"QLinearMatMul", 10, qlinear_matmul},
    {"QuantizeLinear", 10, quantize_linear},
};

}  // namespace

std::span<const Translator> quantize_translators() { return kRows; }

}  // namespace tenon::onnx
