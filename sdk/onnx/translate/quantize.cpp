// Quantisation, computed in floats: f32 holds integers up to 2^24 exactly, f64 up to 2^53.
#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/tensors/tensor_data.h"
#include "sdk/onnx/translate/layers.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

// A scale or zero point: one number, one per index along the attribute `axis`, or one per block of indices.
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

// The integers that a quantised type holds.
struct Range {
  DType dtype;
  int64_t low, high;
};
constexpr Range kRanges[] = {{DType::i8, -128, 127}, {DType::u8, 0, 255}, {DType::i16, -32768, 32767},
                             {DType::u16, 0, 65535}, {DType::i4, -8, 7},  {DType::u4, 0, 15},
                             {DType::i2, -2, 1},     {DType::u2, 0, 3}};

const Range* range_of(DType dtype) {
  for (const Range& range : kRanges) {
    if (range.dtype == dtype) return &range;
  }
  return nullptr;
}

// Of a dtype that check_quantized lets pass.
Tensor quantize(const Tensor& x, const Tensor& scale, const Tensor& zero, DType dtype) {
  const Range& range = *range_of(dtype);
  const Tensor steps = round(div(x, scale));
  const Tensor moved = zero.defined() ? add(steps, cast(zero, x.dtype())) : steps;
  return cast(clamp(moved, Scalar(range.low), Scalar(range.high)), dtype);
}

// Integers but those of 32 and 64 bits.
void check_quantized(NodeContext& n, DType dtype) {
  if (range_of(dtype) == nullptr)
    n.unsupported(fmt::format("it quantises to {}; integers of 2 to 16 bits are translated", dtype_name(dtype)));
}

// In a float type steps have no whole numbers; the cast rounds, and f8 saturates unless the node says otherwise.
Tensor quantize_to_float(NodeContext& n, const Tensor& x, const Tensor& scale, const Tensor& zero, DType dtype) {
  const Tensor steps = div(x, scale);
  const Tensor moved = zero.defined() ? add(steps, cast(zero, DType::f32)) : steps;
  const double most = n.flag("saturate", true) ? greatest_of(dtype) : 0.0;
  return cast(most == 0 ? moved : clamp(moved, Scalar(-most), Scalar(most)), dtype);
}

TensorList quantize_linear(NodeContext& n) {
  const Tensor zero = n.has(2) ? along_axis(n, n.input(2)) : Tensor();
  const auto named = static_cast<int32_t>(n.integer("output_dtype", 0));
  const DType dtype = n.has(2) ? n.dtype(2) : named != 0 ? dtype_of_onnx(named) : DType::u8;
  const Tensor x = cast(n.input(0), DType::f32), scale = cast(along_axis(n, n.input(1)), DType::f32);
  if (is_floating(dtype) && dtype_info(dtype).bits <= 8) return {quantize_to_float(n, x, scale, zero, dtype)};
  check_quantized(n, dtype);
  return {quantize(x, scale, zero, dtype)};
}

// x - zero point, in f32.
Tensor centred(const Tensor& x, const Tensor& zero) {
  const Tensor floats = cast(x, DType::f32);
  return zero.defined() ? sub(floats, cast(zero, DType::f32)) : floats;
}

TensorList dequantize_linear(NodeContext& n) {
  const Tensor zero = n.has(2) ? along_axis(n, n.input(2)) : Tensor();
  const Tensor scale = along_axis(n, n.input(1));
  const auto named = static_cast<int32_t>(n.integer("output_dtype", 0));
  const DType dtype = named != 0 ? dtype_of_onnx(named) : scale.dtype();
  if (!is_floating(dtype)) n.invalid(fmt::format("its output_dtype is {}", onnx_type_name(named)));
  return {cast(mul(centred(n.input(0), zero), cast(scale, DType::f32)), dtype)};
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

// The float type whose sums of so many products of u8 are exact: a product is below 2^16.
DType exact_type(NodeContext& n, int64_t terms) {
  if (terms <= 1 << 8) return DType::f32;
  if (terms > int64_t{1} << 37) n.unsupported(fmt::format("it sums {} products of integers", terms));
  return DType::f64;
}

// x - zero point, in a type in which sums are exact.
Tensor exact(const Tensor& x, const Tensor& zero, DType type) { return cast(centred(x, zero), type); }

// Sums beyond 31 bits wrap around, as they do where integers are summed.
Tensor as_i32(const Tensor& sums) { return cast(cast(sums, DType::i64), DType::i32); }

int64_t terms_of_matmul(NodeContext& n) { return n.rank(0) == 0 ? 0 : bound(n.sizes(0).back(), "MatMul"); }

TensorList matmul_integer(NodeContext& n) {
  const DType type = exact_type(n, terms_of_matmul(n));
  return {as_i32(matmul(exact(n.input(0), row_zero(n.optional(2)), type), exact(n.input(1), n.optional(3), type)))};
}

// Sums of products, of which `scale` is the real step, in steps of y.
Tensor requantized(NodeContext& n, const Tensor& sums, const Tensor& scale, size_t zero) {
  const Tensor one = full({}, Scalar(1.0), DType::f32, n.device());
  return quantize(mul(cast(sums, DType::f32), scale), one, n.input(zero), n.dtype(zero));
}

TensorList qlinear_matmul(NodeContext& n) {
  check_quantized(n, n.dtype(7));
  const DType type = exact_type(n, terms_of_matmul(n));
  const Tensor product = matmul(exact(n.input(0), row_zero(n.input(2)), type), exact(n.input(3), n.input(5), type));
  const auto real = [&](size_t i) { return cast(n.input(i), DType::f32); };
  return {requantized(n, product, div(mul(row_zero(real(1)), real(4)), real(6)), 7)};
}

// A number per output channel, beside [n, channels, ..].
Tensor by_channel(const Tensor& x, int32_t rank) {
  if (x.elements() == 1) return reshape(x, Dims());
  Dims shape = Dims::filled(rank, 1);
  shape[1] = x.elements();
  return reshape(x, shape);
}

// A number per output channel, beside weights [channels, ..].
Tensor by_filter(const Tensor& x, int32_t rank) {
  if (!x.defined() || x.elements() == 1) return x.defined() ? reshape(x, Dims()) : x;
  Dims shape = Dims::filled(rank, 1);
  shape[0] = x.elements();
  return reshape(x, shape);
}

// The sums of a convolution of integers. The pads hold the zero point, so the centred input is padded with 0.
Tensor integer_conv(NodeContext& n, size_t x, size_t weight, const Tensor& x_zero, const Tensor& weight_zero) {
  const Dims& dims = n.dims(weight);
  if (dims.rank() < 3 || dims[0] < 1) n.invalid(fmt::format("its weights have shape {}", dims));
  const DType type = exact_type(n, element_count(dims) / dims[0]);
  const Tensor filters = exact(n.input(weight), by_filter(weight_zero, dims.rank()), type);
  return conv_of_node(n, exact(n.input(x), x_zero, type), filters, Tensor());
}

TensorList conv_integer(NodeContext& n) {
  const Tensor zero = n.optional(2);
  return {as_i32(integer_conv(n, 0, 1, zero.defined() ? reshape(zero, Dims()) : zero, n.optional(3)))};
}

TensorList qlinear_conv(NodeContext& n) {
  check_quantized(n, n.dtype(7));
  Tensor sums = integer_conv(n, 0, 3, reshape(n.input(2), Dims()), n.input(5));
  if (n.has(8)) sums = add(sums, cast(by_channel(n.input(8), sums.rank()), sums.dtype()));
  const Tensor scale = div(mul(n.input(1), by_channel(n.input(4), sums.rank())), n.input(6));
  return {requantized(n, sums, scale, 7)};
}

constexpr Translator kRows[] = {
    {"ConvInteger", 10, conv_integer},
    {"DequantizeLinear", 10, dequantize_linear},
    {"DynamicQuantizeLinear", 11, dynamic_quantize_linear},
    {"MatMulInteger", 10, matmul_integer},
    {"QLinearConv", 10, qlinear_conv},
    {"QLinearMatMul", 10, qlinear_matmul},
    {"QuantizeLinear", 10, quantize_linear},
};

}  // namespace

std::span<const Translator> quantize_translators() { return kRows; }

}  // namespace tenon::onnx
