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

// The elements that each window of `x` covers, [n, channels, taps, windows..]. `x` is already padded.
Tensor windows_of(const Tensor& x, const Dims& kernel, const ep_convolution_attributes& at) {
  int64_t taps = 1;
  for (const int64_t length : kernel) taps *= length;
  TensorList parts;
  for (int64_t tap = 0; tap < taps; ++tap) {
    Tensor part = x;
    int64_t rest = tap;
    for (int32_t i = kernel.rank() - 1; i >= 0; --i) {
      const int64_t span = at.dilation[i] * (kernel[i] - 1) + 1, start = rest % kernel[i] * at.dilation[i];
      if (x.dim(i + 2) < span) {
        refuse("conv", "a window of {} elements does not fit the {} elements of spatial axis {}.", span, x.dim(i + 2),
               i);
      }
      part = tenon::slice(part, i + 2, start, x.dim(i + 2) - span + start + 1, at.stride[i]);
      rest /= kernel[i];
    }
    parts.push_back(part);
  }
  return tenon::stack(parts, 2);
}

// A convolution of integers, which wrap, as a matmul: convolution kernels take only floats.
Tensor integer_conv(const Tensor& input, const Tensor& weight, const Tensor& bias,
                    const ep_convolution_attributes& at) {
  const Dims kernel(std::span<const int64_t>(weight.dims().begin() + 2, weight.dims().end()));
  const int64_t outputs = weight.dim(0);
  if (at.groups < 1 || input.dim(1) != weight.dim(1) * at.groups || outputs % at.groups != 0) {
    refuse("conv", "input of shape {} and weight of shape {} do not fit {} groups.", input.dims(), weight.dims(),
           at.groups);
  }
  Dims pads;
  for (int32_t i = kernel.rank() - 1; i >= 0; --i) {
    pads.push_back(at.pad_low[i]);
    pads.push_back(at.pad_high[i]);
  }
  const Tensor columns = windows_of(tenon::pad(input, pads), kernel, at);
  Dims dims = columns.dims();
  dims.erase(2);
  dims[1] = outputs;
  const int64_t length = weight.dim(1) * columns.dim(2);
  const Tensor rows = tenon::reshape(weight, {at.groups, outputs / at.groups, length});
  int64_t windows = 1;
  for (int32_t i = 2; i < dims.rank(); ++i) windows *= dims[i];
  const Tensor groups = tenon::reshape(columns, {dims[0], at.groups, length, windows});
  const Tensor result = tenon::reshape(tenon::matmul(rows, groups), dims);
  if (!bias.defined()) return result;
  Dims along = Dims::filled(dims.rank(), 1);
  along[1] = outputs;
  return tenon::add(result, tenon::reshape(bias, along));
}

// A transposed convolution of integers: its windows move over the elements of `input` with stride - 1 zeros between
// them.
Tensor integer_conv_transpose(const Tensor& input, const Tensor& weight, const Tensor& bias,
                              const ConvolutionAttributes& attributes) {
  ep_convolution_attributes at = attributes.window;
  at.transposed = 0;
  Tensor x = input;
  Dims flipped;
  for (int32_t i = 0; i < at.spatial_rank; ++i) {
    Dims dims = x.dims();
    dims[i + 2] = (dims[i + 2] - 1) * at.stride[i] + 1;
    if (at.stride[i] > 1) {
      Dims apart = x.dims();
      apart[i + 2] *= at.stride[i];
      Dims pads = Dims::filled(2 * (x.rank() - i - 3), 0);  // pads of the axes after the new one
      pads.push_back(0);
      pads.push_back(at.stride[i] - 1);
      const Tensor wide = tenon::pad(tenon::unsqueeze(x, i + 3), pads);
      x = tenon::narrow(tenon::reshape(wide, apart), i + 2, 0, dims[i + 2]);
    }
    const int64_t reach = at.dilation[i] * (weight.dim(i + 2) - 1);
    at.pad_low[i] = reach - at.pad_low[i];
    at.pad_high[i] = reach - at.pad_high[i] + attributes.output_padding[i];
    at.stride[i] = 1;
    flipped.push_back(i + 3);
  }
  if (at.groups < 1 || weight.dim(0) % at.groups != 0 || input.dim(1) != weight.dim(0)) {
    refuse("conv_transpose", "input of shape {} and weight of shape {} do not fit {} groups.", input.dims(),
           weight.dims(), at.groups);
  }
  Dims dims = weight.dims();
  dims.insert(0, at.groups);
  dims[1] /= at.groups;
  const Tensor turned = tenon::transpose(tenon::flip(tenon::reshape(weight, dims), flipped), 1, 2);
  std::swap(dims[1], dims[2]);
  dims[1] *= dims[0];
  dims.erase(0);
  return integer_conv(x, tenon::reshape(turned, dims), bias, at);
}

Tensor apply_convolution(OpId id, const Tensor& input, const Tensor& weight, const Tensor& bias,
                         const ConvolutionAttributes& attributes) {
  const bool transposed = id == OpId::conv_transpose;
  if (is_integer(input.dtype())) {
    return transposed ? integer_conv_transpose(input, weight, bias, attributes)
                      : integer_conv(input, weight, bias, attributes.window);
  }
  return apply(id, {&input, &weight, or_null(bias)}, &attributes);
}

}  // namespace

Tensor product(const Tensor& a, const Tensor& b, const Tensor& addend) {
  if (addend.defined() && a.rank() > 1 && b.rank() > 1) {
    const Tensor* inputs[] = {&a, &b, &addend};
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
  return addend.defined() ? tenon::add(bare, addend) : bare;
}

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
  if (weight.rank() == 1) {  // a vector: one column, whose axis is removed
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
  if (is_empty(x) || is_empty(gradient)) {
    return with_history_of(is_empty(x) ? x : gradient, tenon::zeros(dims, dtype, x.device()));
  }
  return apply(OpId::conv_grad_weight, {&x, &gradient}, &attributes);
}

namespace {

Tensor conv_of_rank(std::string_view op, int32_t spatial, const Tensor& input, const Tensor& weight, const Tensor& bias,
                    IntList stride, IntList padding, IntList dilation, int64_t groups) {
  require_defined(op, "input", input);
  require_defined(op, "weight", weight);
  if (input.rank() != spatial + 2 || weight.rank() != spatial + 2) {
    refuse(op, "input of shape {} and weight of shape {} must have rank {}.", input.dims(), weight.dims(), spatial + 2);
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
