// Decompositions of quantised ops into float ops: f32 holds integers up to 2^24 exactly, f64 up to 2^53.
#include <cmath>

#include "core/ops/attributes.h"
#include "core/ops/decompose/result.h"
#include "core/ops/rules.h"
#include "core/ops/rules/quantisation.h"
#include "primitives/text/format.h"

namespace tenon::ops {
namespace {

// A scale or zero point, reshaped to broadcast with an operand of `dims`; it varies along `axis` or in blocks.
Tensor beside(const Tensor& parameter, const Dims& dims, int32_t axis, int64_t block) {
  if (!parameter.defined()) return parameter;
  const Spread spread = spread_of(parameter.rank(), dims.rank(), block);
  if (spread == Spread::one) return parameter;
  if (spread == Spread::along_axis) {
    Dims shape = Dims::filled(dims.rank(), 1);
    shape[axis] = parameter.elements();
    return reshape(parameter, shape);
  }
  const Tensor places =
      arange(Scalar(int64_t{0}), Scalar(dims[axis]), Scalar(int64_t{1}), DType::i64, parameter.device());
  const Tensor numbers = dtype_size(parameter.dtype()) == 0 ? cast(parameter, DType::f32) : parameter;
  return gather_slices(numbers, axis, floor_divide(places, Scalar(block)));
}

// x - zero point, in `dtype`.
Tensor centred(const Tensor& x, const Tensor& zero, DType dtype) {
  const Tensor floats = cast(x, dtype);
  return zero.defined() ? sub(floats, cast(zero, dtype)) : floats;
}

Tensor real(const Tensor& x, const Tensor& scale, const Tensor& zero) {
  const Tensor floats = centred(x, zero, DType::f32);
  return scale.defined() ? mul(floats, cast(scale, DType::f32)) : floats;
}

// Quantises `x`, real numbers in f32, to `dtype`.
Tensor numbers(const Tensor& x, const Tensor& scale, const Tensor& zero, DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  const bool is_signed = info.type_class == DTypeClass::INT;
  const int64_t low = is_signed ? -(int64_t{1} << (info.bits - 1)) : 0;
  const int64_t high = (int64_t{1} << (info.bits - (is_signed ? 1 : 0))) - 1;
  const Tensor quotient = scale.defined() ? div(x, cast(scale, DType::f32)) : x;
  const Tensor steps = round(quotient);
  const Tensor moved = zero.defined() ? add(steps, cast(zero, DType::f32)) : steps;
  const Tensor ordered = where(ne(moved, moved), Scalar(static_cast<double>(low)), moved);
  return cast(clamp(ordered, Scalar(low), Scalar(high)), dtype);
}

// The float type in which the sum of `terms` products of integers of at most 16 bits is exact.
DType exact_type(const OpCall& call, int64_t terms, const Tensor& a, const Tensor& b) {
  const int bits = dtype_info(a.dtype()).bits + dtype_info(b.dtype()).bits +
                   2;  // subtracting a zero point adds a bit to each factor
  const auto most = [&](int mantissa) { return mantissa < bits ? 0 : int64_t{1} << (mantissa - bits); };
  if (terms <= most(24)) return DType::f32;
  if (terms <= most(53)) return DType::f64;
  throw Error(Subject{call.op->name}, Code::unsupported,
              fmt::format("it sums {} products of {} and {}.", terms, dtype_name(a.dtype()), dtype_name(b.dtype())));
}

// Converts sums of products: wraps them to 32 bits, or converts to `dtype`, or quantises to it.
Tensor finished(const OpCall& call, const Tensor& sums, const Tensor& step, const Tensor& bias, DType dtype) {
  const Tensor scale = optional(call, 7), zero = optional(call, 8);
  if (dtype == DType::i32 && !scale.defined() && !zero.defined()) return cast(cast(sums, DType::i64), DType::i32);
  Tensor result = cast(sums, DType::f32);
  if (step.defined()) result = mul(result, step);
  if (bias.defined()) result = add(result, cast(bias, DType::f32));
  return scale.defined() || zero.defined() ? numbers(result, scale, zero, dtype) : cast(result, dtype);
}

// The product of the scales of both factors; undefined if neither has one.
Tensor both(const Tensor& a, const Tensor& b) { return !a.defined() ? b : !b.defined() ? a : mul(a, b); }

bool sums_exactly(const OpCall& call) {
  return is_integer(input(call, 0).dtype()) && is_integer(input(call, 3).dtype());
}

// The product of both factors by `multiply`. `beside_right` reshapes a scale or zero point to broadcast with the right
// factor, `beside_result` a scale with the result.
template <class Multiply, class Beside, class BesideResult>
void decompose_product(const OpCall& call, int64_t terms, bool blocks, DType dtype, const Tensor& bias,
                       const Multiply& multiply, const Beside& beside_right, const BesideResult& beside_result) {
  const Tensor &a = input(call, 0), &b = input(call, 3);
  const Tensor left = optional(call, 1), right = optional(call, 4);
  const Tensor left_zero = optional(call, 2), right_zero = beside_right(optional(call, 5));
  if (!sums_exactly(call) || blocks) {
    const Tensor product = multiply(real(a, left, left_zero), real(b, beside_right(right), right_zero));
    return store(call, finished(call, product, {}, bias, dtype));
  }
  const DType type = exact_type(call, terms, a, b);
  const Tensor sums = multiply(centred(a, left_zero, type), centred(b, right_zero, type));
  store(call, finished(call, sums, both(left, beside_result(right)), bias, dtype));
}

void decompose_binary(const OpCall& call, Tensor (*function)(const Tensor&, const Tensor&)) {
  const Tensor a = real(input(call, 0), input(call, 1), optional(call, 2));
  const Tensor b = real(input(call, 3), input(call, 4), optional(call, 5));
  const DType dtype = call.attributes_as<QuantizedBinaryAttributes>().dtype;
  store(call, numbers(function(a, b), input(call, 6), optional(call, 7), dtype));
}

}  // namespace

void decompose_quantize_linear(const OpCall& call) {
  const auto& at = call.attributes_as<QuantisationAttributes>();
  const Tensor& x = input(call, 0);
  const Tensor scale = beside(input(call, 1), x.dims(), at.axis, at.block);
  const Tensor zero = beside(optional(call, 2), x.dims(), at.axis, at.block);
  store(call, numbers(cast(x, DType::f32), scale, zero, at.dtype));
}

void decompose_dequantize_linear(const OpCall& call) {
  const auto& at = call.attributes_as<QuantisationAttributes>();
  const Tensor& x = input(call, 0);
  const Tensor scale = beside(input(call, 1), x.dims(), at.axis, at.block);
  const Tensor zero = beside(optional(call, 2), x.dims(), at.axis, at.block);
  if (x.dtype() != DType::i32) return store(call, cast(real(x, scale, zero), at.dtype));
  store(call, cast(mul(centred(x, zero, DType::f64), cast(scale, DType::f64)), at.dtype));
}

void decompose_quantized_matmul(const OpCall& call) {
  const auto& at = call.attributes_as<QuantizedProductAttributes>();
  const Dims dims = input(call, 3).dims();
  const auto beside_right = [&](const Tensor& given) {
    return given.defined() && given.rank() == 2 ? beside(given, dims, 0, at.block) : given;
  };
  const Tensor right = optional(call, 4), right_zero = optional(call, 5);
  const bool blocks = (right.defined() && right.rank() == 2) || (right_zero.defined() && right_zero.rank() == 2);
  const auto multiply = [](const Tensor& a, const Tensor& b) { return matmul(a, b); };
  decompose_product(call, dims[dims.rank() - 2], blocks, at.dtype, optional(call, 6), multiply, beside_right,
                    [](const Tensor& given) { return given; });
}

void decompose_quantized_conv(const OpCall& call) {
  const auto& at = call.attributes_as<QuantizedConvolutionAttributes>();
  const Dims dims = input(call, 3).dims();
  ConvolutionAttributes window{};
  window.window = at.window;
  const auto multiply = [&](const Tensor& a, const Tensor& b) {
    return functors::apply(OpId::conv, {&a, &b, nullptr}, &window);
  };
  const auto along = [&](int32_t axis) {
    return [&dims, axis](const Tensor& given) { return beside(given, dims, axis, 0); };
  };
  const auto by_channel = [&](const Tensor& given) {
    if (!given.defined() || given.rank() == 0) return given;
    Dims shape = Dims::filled(dims.rank(), 1);
    shape[1] = given.elements();
    return reshape(given, shape);
  };
  decompose_product(call, element_count(dims) / dims[0], false, at.dtype, by_channel(optional(call, 6)), multiply,
                    along(0), by_channel);
}

void decompose_quantized_add(const OpCall& call) {
  decompose_binary(call, [](const Tensor& a, const Tensor& b) { return add(a, b); });
}

void decompose_quantized_mul(const OpCall& call) {
  decompose_binary(call, [](const Tensor& a, const Tensor& b) { return mul(a, b); });
}

}  // namespace tenon::ops
