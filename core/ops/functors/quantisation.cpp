// Quantised numbers: conversions, products and sums.
#include "core/ops/functors/apply.h"
#include "core/ops/functors/window.h"
#include "core/ops/sizes.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

// A scale or zero point that is one number, with rank 0.
Tensor parameter(const Tensor& given) {
  if (!given.defined() || given.rank() == 0 || is_open(given) || given.elements() != 1) return given;
  return tenon::reshape(given, Dims());
}

// A scale in f32 and its zero point, with equally many numbers.
struct Numbers {
  Tensor scale, zero_point;

  Numbers(const Tensor& given_scale, const Tensor& given_zero_point)
      : scale(parameter(given_scale)), zero_point(parameter(given_zero_point)) {
    if (scale.defined()) scale = tenon::cast(scale, DType::f32);
    if (!scale.defined() || !zero_point.defined() || scale.rank() == zero_point.rank()) return;
    Tensor& one = scale.rank() == 0 ? scale : zero_point;
    const Tensor& many = scale.rank() == 0 ? zero_point : scale;
    if (one.rank() == 0) one = tenon::expand(one, many.dims());
  }
};

Tensor convert(OpId id, const Tensor& input, const Numbers& numbers, int64_t dim, int64_t block_size, DType dtype) {
  const std::string_view op = op_row(id).name;
  require_defined(op, "scale", numbers.scale);
  if (block_size < 0) refuse(op, "block_size is {}; it must not be negative.", block_size);
  QuantisationAttributes attributes{};
  attributes.dtype = dtype;
  if (numbers.scale.rank() > 0) {
    attributes.axis = axis_of(op, dim, input.rank());
    attributes.block = numbers.scale.rank() > 1 || input.rank() == 1 ? block_size : 0;
  }
  return apply(id, {&input, &numbers.scale, or_null(numbers.zero_point)}, &attributes);
}

// `given`; an f64 tensor is cast to f32.
Tensor factor(const Tensor& given) { return given.dtype() == DType::f64 ? tenon::cast(given, DType::f32) : given; }

// The zero point of `factor`; 0 for sums of integers where nothing else marks them as quantised.
Tensor zero_of(const Tensor& factor, const Numbers& left, const Numbers& right, DType dtype) {
  const bool bare = !left.scale.defined() && !left.zero_point.defined() && !right.scale.defined() &&
                    !right.zero_point.defined() && dtype == DType::i32 && is_integer(factor.dtype());
  return bare ? tenon::full(Dims(), Scalar(int64_t{0}), factor.dtype(), factor.device()) : left.zero_point;
}

Tensor bias_of(const Tensor& bias, const Numbers& result, DType dtype) {
  if (!bias.defined()) return bias;
  return tenon::cast(bias, result.scale.defined() || result.zero_point.defined() ? DType::f32 : dtype);
}

Tensor combine(OpId id, int32_t function, const Tensor& input, const Numbers& of_input, const Tensor& other,
               const Numbers& of_other, const Numbers& result, DType dtype) {
  const std::string_view op = op_row(id).name;
  require_defined(op, "input", input);
  require_defined(op, "other", other);
  require_defined(op, "input_scale", of_input.scale);
  require_defined(op, "other_scale", of_other.scale);
  require_defined(op, "scale", result.scale);
  const QuantizedBinaryAttributes attributes{dtype, function};
  return apply(id,
               {&input, &of_input.scale, or_null(of_input.zero_point), &other, &of_other.scale,
                or_null(of_other.zero_point), &result.scale, or_null(result.zero_point)},
               &attributes);
}

}  // namespace

Tensor quantize_linear(const Tensor& input, const Tensor& scale, const Tensor& zero_point, int64_t dim,
                       int64_t block_size, DType dtype) {
  require_defined("quantize_linear", "input", input);
  const bool real = is_floating(input.dtype()) && dtype_size(input.dtype()) <= 4;
  return convert(OpId::quantize_linear, real ? input : tenon::cast(input, DType::f32), {scale, zero_point}, dim,
                 block_size, dtype);
}

Tensor dequantize_linear(const Tensor& input, const Tensor& scale, const Tensor& zero_point, int64_t dim,
                         int64_t block_size, DType dtype) {
  require_defined("dequantize_linear", "input", input);
  return convert(OpId::dequantize_linear, input, {scale, zero_point}, dim, block_size, dtype);
}

Tensor quantized_matmul(const Tensor& input, const Tensor& input_scale, const Tensor& input_zero_point,
                        const Tensor& other, const Tensor& other_scale, const Tensor& other_zero_point,
                        const Tensor& bias, const Tensor& scale, const Tensor& zero_point, int64_t block_size,
                        DType dtype) {
  constexpr std::string_view op = "quantized_matmul";
  require_defined(op, "input", input);
  require_defined(op, "other", other);
  if (block_size < 0 || block_size > INT32_MAX)
    refuse(op, "block_size is {}; it must be from 0 to 2^31 - 1.", block_size);
  const Numbers left(input_scale, input_zero_point), right(other_scale, other_zero_point), result(scale, zero_point);
  const Tensor a = factor(input), b = factor(other), addend = bias_of(bias, result, dtype);
  const Tensor zero = zero_of(a, left, right, dtype);
  const QuantizedProductAttributes attributes{dtype, static_cast<int32_t>(block_size)};
  return apply(OpId::quantized_matmul,
               {&a, or_null(left.scale), or_null(zero), &b, or_null(right.scale), or_null(right.zero_point),
                or_null(addend), or_null(result.scale), or_null(result.zero_point)},
               &attributes);
}

Tensor quantized_conv(const Tensor& input, const Tensor& input_scale, const Tensor& input_zero_point,
                      const Tensor& weight, const Tensor& weight_scale, const Tensor& weight_zero_point,
                      const Tensor& bias, const Tensor& scale, const Tensor& zero_point, IntList stride,
                      IntList padding, IntList dilation, int64_t groups, DType dtype) {
  constexpr std::string_view op = "quantized_conv";
  require_defined(op, "input", input);
  require_defined(op, "weight", weight);
  const int32_t spatial = window::spatial_rank(op, input, weight);
  QuantizedConvolutionAttributes attributes{};
  attributes.dtype = dtype;
  attributes.window.spatial_rank = spatial;
  attributes.window.groups = groups;
  window::per_axis(op, "stride", stride, spatial, attributes.window.stride);
  window::per_axis(op, "dilation", dilation, spatial, attributes.window.dilation);
  window::padding(op, padding, spatial, attributes.window.pad_low, attributes.window.pad_high);
  const Numbers left(input_scale, input_zero_point), right(weight_scale, weight_zero_point), result(scale, zero_point);
  const Tensor a = factor(input), b = factor(weight), addend = bias_of(bias, result, dtype);
  const Tensor zero = zero_of(a, left, right, dtype);
  return apply(OpId::quantized_conv,
               {&a, or_null(left.scale), or_null(zero), &b, or_null(right.scale), or_null(right.zero_point),
                or_null(addend), or_null(result.scale), or_null(result.zero_point)},
               &attributes);
}

Tensor quantized_add(const Tensor& input, const Tensor& input_scale, const Tensor& input_zero_point,
                     const Tensor& other, const Tensor& other_scale, const Tensor& other_zero_point,
                     const Tensor& scale, const Tensor& zero_point, DType dtype) {
  return combine(OpId::quantized_add, EP_BINARY_add, input, {input_scale, input_zero_point}, other,
                 {other_scale, other_zero_point}, {scale, zero_point}, dtype);
}

Tensor quantized_mul(const Tensor& input, const Tensor& input_scale, const Tensor& input_zero_point,
                     const Tensor& other, const Tensor& other_scale, const Tensor& other_zero_point,
                     const Tensor& scale, const Tensor& zero_point, DType dtype) {
  return combine(OpId::quantized_mul, EP_BINARY_mul, input, {input_scale, input_zero_point}, other,
                 {other_scale, other_zero_point}, {scale, zero_point}, dtype);
}

}  // namespace tenon::functors
