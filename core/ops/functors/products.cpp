// matmul and convolution.
#include "core/ops/functors/apply.h"
#include "core/ops/functors/sized.h"
#include "core/ops/functors/window.h"
#include "primitives/infer/matmul-inl.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

Tensor cast_if_defined(const Tensor& tensor, DType dtype) {
  return tensor.defined() ? tenon::cast(tensor, dtype) : tensor;
}

// The product of two tensors of one dtype, whose shapes the record's rule checks. `bias`, if it is defined, broadcasts
// to the result.
Tensor product(const Tensor& a, const Tensor& b, const Tensor& bias = {}) {
  if (bias.defined() && a.rank() > 1 && b.rank() > 1) {
    const Tensor* inputs[] = {&a, &b, &bias};
    const Epilogue add{&op_row(OpId::add), 2, 0};
    Tensor result;
    OpCall call;
    call.op = &op_row(OpId::matmul);
    call.inputs = inputs;
    call.epilogues = {&add, 1};
    call.outputs = {&result, 1};
    current_interpreter().apply(call);
    return result;
  }
  const Tensor bare = apply(OpId::matmul, {&a, &b}, nullptr);
  return bias.defined() ? tenon::add(bare, bias) : bare;
}

Tensor apply_convolution(OpId id, const Tensor& input, const Tensor& weight, const Tensor& bias,
                         const ConvolutionAttributes& attributes) {
  return apply(id, {&input, &weight, or_null(bias)}, &attributes);
}

}  // namespace

Tensor matmul(const Tensor& input, const Tensor& other) {
  require_defined("matmul", "input", input);
  require_defined("matmul", "other", other);
  if (input.dtype() == other.dtype()) return product(input, other);
  const DType dtype = promote(input.dtype(), other.dtype());
  return product(tenon::cast(input, dtype), tenon::cast(other, dtype));
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  require_defined("linear", "input", input);
  require_defined("linear", "weight", weight);
  if (weight.rank() == 1) {  // one column, whose axis vanishes
    const Tensor result = tenon::matmul(input, weight);
    return bias.defined() ? tenon::add(result, bias) : result;
  }
  (void)value_or_throw(
      infer::linear("linear", input.impl()->dims, weight.impl()->dims, bias.defined() ? &bias.impl()->dims : nullptr));
  if (is_open(input) || is_open(weight) || (bias.defined() && is_open(bias))) {
    expect(size_at(input, input.rank() - 1) == size_at(weight, 1));
    if (bias.defined()) expect(size_at(bias, 0) == size_at(weight, 0));
  }
  const DType dtype = promote(input.dtype(), weight.dtype());
  const Tensor columns = tenon::transpose(tenon::cast(weight, dtype), 0, 1);
  return product(tenon::cast(input, dtype), columns, cast_if_defined(bias, dtype));
}

Tensor conv(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, IntList padding,
            IntList dilation, int64_t groups) {
  require_defined("conv", "input", input);
  require_defined("conv", "weight", weight);
  const int32_t spatial = window::spatial_rank("conv", input, weight);
  ConvolutionAttributes attributes{};
  attributes.window.spatial_rank = spatial;
  attributes.window.groups = groups;
  window::per_axis("conv", "stride", stride, spatial, attributes.window.stride);
  window::per_axis("conv", "dilation", dilation, spatial, attributes.window.dilation);
  window::padding("conv", padding, spatial, attributes.window.pad_low, attributes.window.pad_high);
  const DType dtype = promote(input.dtype(), weight.dtype());
  return apply_convolution(OpId::conv, tenon::cast(input, dtype), tenon::cast(weight, dtype),
                           cast_if_defined(bias, dtype), attributes);
}

Tensor conv_grad_weight(const Tensor& input, IntList weight_size, const Tensor& grad_output, IntList stride,
                        IntList padding, IntList dilation, int64_t groups) {
  constexpr std::string_view op = "conv_grad_weight";
  require_defined(op, "input", input);
  require_defined(op, "grad_output", grad_output);
  const int32_t spatial = window::spatial_rank(op, input);
  ConvolutionWeightAttributes attributes{};
  attributes.window.spatial_rank = spatial;
  attributes.window.groups = groups;
  window::per_axis(op, "stride", stride, spatial, attributes.window.stride);
  window::per_axis(op, "dilation", dilation, spatial, attributes.window.dilation);
  window::padding(op, padding, spatial, attributes.window.pad_low, attributes.window.pad_high);
  const Dims dims = value_or_throw(infer::checked(op, dims_of(op, weight_size)));
  attributes.dims = DimsAttribute::of({dims.data(), dims.size()});
  DType dtype = promote(input.dtype(), grad_output.dtype());
  if (!is_floating(dtype)) dtype = DType::f32;
  const Tensor x = tenon::cast(input, dtype);
  const Tensor gradient = tenon::cast(grad_output, dtype);
  if (is_empty(x) || is_empty(gradient)) return tenon::zeros(dims, dtype, x.device());
  return apply(OpId::conv_grad_weight, {&x, &gradient}, &attributes);
}

namespace {

Tensor conv_of_rank(std::string_view op, int32_t spatial, const Tensor& input, const Tensor& weight, const Tensor& bias,
                    IntList stride, IntList padding, IntList dilation, int64_t groups) {
  require_defined(op, "input", input);
  require_defined(op, "weight", weight);
  if (input.rank() != spatial + 2 || weight.rank() != spatial + 2) {
    refuse("{}: input of shape {} and weight of shape {} must have rank {}.", op, input.dims(), weight.dims(),
           spatial + 2);
  }
  return tenon::conv(input, weight, bias, stride, padding, dilation, groups);
}

}  // namespace

Tensor conv1d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, IntList padding,
              IntList dilation, int64_t groups) {
  return conv_of_rank("conv1d", 1, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, IntList padding,
              IntList dilation, int64_t groups) {
  return conv_of_rank("conv2d", 2, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv3d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, IntList padding,
              IntList dilation, int64_t groups) {
  return conv_of_rank("conv3d", 3, input, weight, bias, stride, padding, dilation, groups);
}

Tensor conv_transpose(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, IntList padding,
                      IntList output_padding, int64_t groups, IntList dilation) {
  require_defined("conv_transpose", "input", input);
  require_defined("conv_transpose", "weight", weight);
  const int32_t spatial = window::spatial_rank("conv_transpose", input, weight);
  ConvolutionAttributes attributes{};
  attributes.window.spatial_rank = spatial;
  attributes.window.transposed = 1;
  attributes.window.groups = groups;
  window::per_axis("conv_transpose", "stride", stride, spatial, attributes.window.stride);
  window::per_axis("conv_transpose", "dilation", dilation, spatial, attributes.window.dilation);
  window::per_axis("conv_transpose", "output_padding", output_padding, spatial, attributes.output_padding);
  window::padding("conv_transpose", padding, spatial, attributes.window.pad_low, attributes.window.pad_high);
  const DType dtype = promote(input.dtype(), weight.dtype());
  return apply_convolution(OpId::conv_transpose, tenon::cast(input, dtype), tenon::cast(weight, dtype),
                           cast_if_defined(bias, dtype), attributes);
}

}  // namespace tenon::functors
