// Quantisation. Products that quantized_matmul does not take are computed in floats: f32 holds integers up to 2^24
// exactly, f64 up to 2^53.
#include <algorithm>

#include "core/ops/ops.h"
#include "core/ops/sizes.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/tensors/tensor_data.h"
#include "sdk/onnx/translate/layers.h"
#include "sdk/onnx/translate/microsoft.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

// A scale or zero point, shaped to broadcast: one number, one per index along the attribute `axis`, or one per block.
Tensor along_axis(NodeContext& n, const Tensor& value) {
  if (value.elements() == 1) return reshape(value, Dims());
  const int64_t block = n.integer("block_size", 0);
  if (block > 0 && value.rank() == n.rank(0)) {
    const int64_t blocked = n.axis(1, n.rank(0)), length = n.dims(0)[blocked];
    Dims wanted = n.dims(0);
    wanted[blocked] = (length + block - 1) / block;
    if (value.dims() != wanted)
      n.invalid(fmt::format("a scale or zero point of shape {} is not {}, one for each block of {}", value.dims(),
                            wanted, block));
    return gather_slices(value, blocked, floor_divide(n.positions(length), Scalar(block)));
  }
  const int64_t axis = n.axis(1, n.rank(0));
  Dims shape = Dims::filled(n.rank(0), 1);
  if (value.rank() != 1 || !(n.sizes(0)[axis] == value.elements())) {
    n.invalid(
        fmt::format("a scale or zero point of shape {} does not fit axis {} of {}", value.dims(), axis, n.dims(0)));
  }
  shape[axis] = value.elements();
  return reshape(value, shape);
}

// The scale in the form that dequantize_linear takes.
Tensor scale_of(NodeContext& n, size_t index) { return cast(n.input(index), DType::f32); }
int64_t axis_of(NodeContext& n) { return n.input(1).elements() == 1 ? 0 : n.axis(1, n.rank(0)); }

// Accepts all integers except those of 32 and 64 bits.
void check_quantized(NodeContext& n, DType dtype) {
  if (!is_integer(dtype) || dtype_info(dtype).bits > 16)
    n.unsupported(fmt::format("it quantises to {}; integers of 2 to 16 bits are translated", dtype_name(dtype)));
}

// Quantises to a float type: the cast rounds, without an earlier rounding to integers, and f8 saturates unless the node
// says otherwise.
Tensor quantize_to_float(NodeContext& n, const Tensor& x, const Tensor& scale, const Tensor& zero, DType dtype) {
  const Tensor steps = div(x, scale);
  const Tensor moved = zero.defined() ? add(steps, cast(zero, DType::f32)) : steps;
  const double most = n.flag("saturate", true) ? greatest_of(dtype) : 0.0;
  return cast(most == 0 ? moved : clamp(moved, Scalar(-most), Scalar(most)), dtype);
}

TensorList quantize_linear(NodeContext& n) {
  const auto named = static_cast<int32_t>(n.integer("output_dtype", 0));
  const DType dtype = n.has(2) ? n.dtype(2) : named != 0 ? dtype_of_onnx(named) : DType::u8;
  if (is_floating(dtype) && dtype_info(dtype).bits <= 8) {
    const Tensor zero = n.has(2) ? along_axis(n, n.input(2)) : Tensor();
    const Tensor x = cast(n.input(0), DType::f32), scale = cast(along_axis(n, n.input(1)), DType::f32);
    return {quantize_to_float(n, x, scale, zero, dtype)};
  }
  check_quantized(n, dtype);
  return {tenon::quantize_linear(cast(n.input(0), DType::f32), scale_of(n, 1), n.optional(2), axis_of(n),
                                 n.integer("block_size", 0), dtype)};
}

// x - zero point, in f32.
Tensor centred(const Tensor& x, const Tensor& zero) {
  const Tensor floats = cast(x, DType::f32);
  return zero.defined() ? sub(floats, cast(zero, DType::f32)) : floats;
}

// True for dtypes that tenon::dequantize_linear takes.
bool is_number(DType dtype) { return is_integer(dtype) && (dtype_info(dtype).bits <= 16 || dtype == DType::i32); }

TensorList dequantize_linear(NodeContext& n) {
  const auto named = static_cast<int32_t>(n.integer("output_dtype", 0));
  const DType dtype = named != 0 ? dtype_of_onnx(named) : n.dtype(1);
  if (!is_floating(dtype))
    n.invalid(fmt::format("its output_dtype is {}; it must be floating-point", onnx_type_name(named)));
  if (is_number(n.dtype(0))) {
    const int64_t block = n.integer("block_size", 0);
    return {cast(tenon::dequantize_linear(n.input(0), scale_of(n, 1), n.optional(2), axis_of(n), block), dtype)};
  }
  const Tensor zero = n.has(2) ? along_axis(n, n.input(2)) : Tensor();
  const Tensor scale = along_axis(n, n.input(1));
  return {cast(mul(centred(n.input(0), zero), cast(scale, DType::f32)), dtype)};
}

TensorList dynamic_quantize_linear(NodeContext& n) {
  const QuantizedTensor q = quantized_over_range(n.input(0));
  return {q.value, q.scale, q.zero_point};
}

// Turns one zero point per row of a into a column.
Tensor row_zero(const Tensor& zero) {
  return zero.defined() && zero.rank() == 1 && zero.elements() > 1 ? unsqueeze(zero, 1) : zero;
}

bool is_one(const Tensor& parameter) { return !parameter.defined() || parameter.elements() == 1; }

// The float type in which the sum of `terms` products of u8 is exact: a product is below 2^16.
DType exact_type(NodeContext& n, int64_t terms) {
  if (terms <= 1 << 8) return DType::f32;
  if (terms > int64_t{1} << 37)
    n.unsupported(fmt::format("it sums {} products of integers, which is too many to be exact", terms));
  return DType::f64;
}

// x - zero point, in a type whose sums are exact.
Tensor exact(const Tensor& x, const Tensor& zero, DType type) { return cast(centred(x, zero), type); }

int64_t terms_of_matmul(NodeContext& n) { return n.rank(0) == 0 ? 0 : bound(n.sizes(0).back(), "MatMul"); }

// True if quantized_matmul takes the inputs: matrices, and one scale and zero point for a.
bool takes_matrices(NodeContext& n, size_t b, std::initializer_list<Tensor> of_a) {
  return n.rank(0) >= 2 && n.rank(b) >= 2 && std::all_of(of_a.begin(), of_a.end(), is_one) && terms_of_matmul(n) > 0;
}

// One number per column as a list, also if it comes as a matrix of one row.
Tensor column_list(const Tensor& parameter) {
  return parameter.defined() && parameter.rank() > 1 && parameter.dims().back() == parameter.elements()
             ? reshape(parameter, {parameter.elements()})
             : parameter;
}

TensorList matmul_integer(NodeContext& n) {
  const Tensor a_zero = n.optional(2), b_zero = column_list(n.optional(3));
  if (takes_matrices(n, 1, {a_zero}) && (is_one(b_zero) || b_zero.rank() == 1)) {
    return {quantized_matmul(n.input(0), {}, a_zero, n.input(1), {}, b_zero, {}, {}, {}, 0, DType::i32)};
  }
  const DType type = exact_type(n, terms_of_matmul(n));
  const Tensor sums = matmul(exact(n.input(0), row_zero(a_zero), type), exact(n.input(1), n.optional(3), type));
  return {cast(cast(sums, DType::i64), DType::i32)};  // sums beyond 31 bits wrap around
}

// Sums beyond the bits of the result wrap around.
TensorList matmul_integer_16(NodeContext& n) {
  if (terms_of_matmul(n) > int64_t{1} << 21) n.unsupported(fmt::format("it sums {} products", terms_of_matmul(n)));
  const Tensor sums = cast(matmul(cast(n.input(0), DType::f64), cast(n.input(1), DType::f64)), DType::i64);
  return {cast(sums, n.dtype(0) == DType::u16 && n.dtype(1) == DType::u16 ? DType::u32 : DType::i32)};
}

TensorList qlinear_matmul(NodeContext& n) {
  check_quantized(n, n.dtype(7));
  const auto real = [&](size_t i) { return cast(n.input(i), DType::f32); };
  const Tensor b_scale = column_list(real(4)), b_zero = column_list(n.input(5));
  const bool columns = (is_one(b_scale) || b_scale.rank() == 1) && (is_one(b_zero) || b_zero.rank() == 1);
  if (takes_matrices(n, 3, {n.input(1), n.input(2)}) && columns) {
    return {quantized_matmul(n.input(0), real(1), n.input(2), n.input(3), b_scale, b_zero, {}, real(6), n.input(7), 0,
                             n.dtype(7))};
  }
  const DType type = exact_type(n, terms_of_matmul(n));
  const Tensor product = matmul(exact(n.input(0), row_zero(n.input(2)), type), exact(n.input(3), n.input(5), type));
  const Tensor scale = mul(row_zero(real(1)), real(4));
  return {tenon::quantize_linear(mul(cast(product, DType::f32), scale), real(6), n.input(7), 0, 0, n.dtype(7))};
}

// A list of one number becomes a single number.
Tensor numbers(const Tensor& parameter) {
  return is_one(parameter) && parameter.defined() ? reshape(parameter, Dims()) : parameter;
}

void check_filters(NodeContext& n, size_t weight) {
  const Dims& dims = n.dims(weight);
  if (dims.rank() < 3 || dims[0] < 1)
    n.invalid(fmt::format("its weights have shape {}; at least one filter of rank 3 or more is needed", dims));
}

TensorList conv_integer(NodeContext& n) {
  check_filters(n, 1);
  const Tensor x_zero = numbers(n.optional(2)), weight_zero = numbers(n.optional(3));
  return {quantized_conv_of_node(n, {n.input(0), {}, x_zero}, {n.input(1), {}, weight_zero}, {}, {}, DType::i32)};
}

TensorList qlinear_conv(NodeContext& n) {
  check_quantized(n, n.dtype(7));
  check_filters(n, 3);
  const auto scale = [&](size_t i) { return numbers(cast(n.input(i), DType::f32)); };
  Tensor bias = n.optional(8);  // it has the scale of the product
  if (bias.defined()) bias = mul(cast(bias, DType::f32), mul(scale(1), scale(4)));
  const bool last = n.flag("channels_last", false);  // only com.microsoft has it
  const Tensor x = last ? channels_first(n.input(0)) : n.input(0);
  const Tensor y =
      quantized_conv_of_node(n, {x, scale(1), numbers(n.input(2))}, {n.input(3), scale(4), numbers(n.input(5))}, bias,
                             {{}, scale(6), numbers(n.input(7))}, n.dtype(7));
  return {last ? channels_last(y) : y};
}

constexpr Translator kQuantizeRows[] = {
    {.op_type = "ConvInteger", .since = 10, .translate = conv_integer},
    {.op_type = "DequantizeLinear", .since = 10, .translate = dequantize_linear},
    {.op_type = "DynamicQuantizeLinear", .since = 11, .translate = dynamic_quantize_linear},
    {.op_type = "MatMulInteger", .since = 10, .translate = matmul_integer},
    {.op_type = "QLinearConv", .since = 10, .translate = qlinear_conv},
    {.op_type = "QLinearMatMul", .since = 10, .translate = qlinear_matmul},
    {.op_type = "QuantizeLinear", .since = 10, .translate = quantize_linear},
    {.domain = kMicrosoft, .op_type = "DequantizeLinear", .since = 1, .translate = dequantize_linear},
    {.domain = kMicrosoft, .op_type = "MatMulInteger16", .since = 1, .translate = matmul_integer_16},
    {.domain = kMicrosoft, .op_type = "QLinearConv", .since = 1, .translate = qlinear_conv},
    {.domain = kMicrosoft, .op_type = "QuantizeLinear", .since = 1, .translate = quantize_linear},
};

}  // namespace

QuantizedTensor quantized_over_range(const Tensor& x) {
  if (is_empty(x)) {
    const Tensor one = full({}, Scalar(1.0), DType::f32, x.device()), zero = full({}, Scalar(0), DType::u8, x.device());
    return {tenon::quantize_linear(x, one, zero), one, zero};
  }
  const Tensor low = minimum(amin(x), Scalar(0.0)), high = maximum(amax(x), Scalar(0.0));
  const Tensor scale = div(sub(high, low), Scalar(255.0));
  const Tensor zero = cast(round(clamp(div(neg(low), scale), Scalar(0.0), Scalar(255.0))), DType::u8);
  return {tenon::quantize_linear(x, scale, zero), scale, zero};
}

std::span<const Translator> quantize_translators() { return kQuantizeRows; }

}  // namespace tenon::onnx
