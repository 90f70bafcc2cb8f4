// Pooling over windows of one to three spatial axes.
#include <cmath>

#include "core/ops/functors/apply.h"
#include "core/ops/functors/positions.h"
#include "core/ops/functors/sized.h"
#include "core/ops/functors/window.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

struct Window {
  IntList kernel_size;
  IntList stride;
  IntList padding;
  IntList dilation;
  bool ceil_mode;
};

PoolingAttributes attributes_of(std::string_view op, int32_t kind, const Tensor& input, const Window& window) {
  require_defined(op, "input", input);
  const int32_t spatial = window::spatial_rank(op, input);
  PoolingAttributes attributes{};
  attributes.window.op = kind;
  attributes.window.spatial_rank = spatial;
  attributes.ceil_mode = window.ceil_mode ? 1 : 0;
  window::per_axis(op, "kernel_size", window.kernel_size, spatial, attributes.window.kernel);
  const IntList& stride = window.stride.empty() ? window.kernel_size : window.stride;
  window::per_axis(op, "stride", stride, spatial, attributes.window.stride);
  window::per_axis(op, "dilation", window.dilation, spatial, attributes.window.dilation);
  window::padding(op, window.padding, spatial, attributes.window.pad_low, attributes.window.pad_high);
  return attributes;
}

void require_rank(std::string_view op, const Tensor& input, int32_t rank) {
  require_defined(op, "input", input);
  if (input.rank() != rank) refuse(op, "input of shape {} must have rank {}.", input.dims(), rank);
}

}  // namespace

Tensor max_pool(const Tensor& input, IntList kernel_size, IntList stride, IntList padding, IntList dilation,
                bool ceil_mode) {
  const PoolingAttributes attributes =
      attributes_of("max_pool", EP_POOLING_MAX, input, {kernel_size, stride, padding, dilation, ceil_mode});
  return apply(OpId::max_pool, {&input}, &attributes);
}

std::tuple<Tensor, Tensor> max_pool_with_indices(const Tensor& input, IntList kernel_size, IntList stride,
                                                 IntList padding, IntList dilation, bool ceil_mode) {
  const PoolingAttributes attributes = attributes_of("max_pool_with_indices", EP_POOLING_MAX, input,
                                                     {kernel_size, stride, padding, dilation, ceil_mode});
  const Tensor* inputs[] = {&input};
  Tensor outputs[2];
  apply(OpId::max_pool_with_indices, inputs, &attributes, outputs);
  return {outputs[0], outputs[1]};
}

Tensor avg_pool(const Tensor& input, IntList kernel_size, IntList stride, IntList padding, bool ceil_mode,
                bool count_include_pad, IntList dilation) {
  const int32_t kind = count_include_pad ? EP_POOLING_AVERAGE_INCLUDE_PAD : EP_POOLING_AVERAGE;
  const PoolingAttributes attributes =
      attributes_of("avg_pool", kind, input, {kernel_size, stride, padding, dilation, ceil_mode});
  if (is_floating(input.dtype())) return apply(OpId::avg_pool, {&input}, &attributes);
  const Tensor source = tenon::cast(input, DType::f64);
  return tenon::cast(apply(OpId::avg_pool, {&source}, &attributes), input.dtype());
}

Tensor lp_pool(const Tensor& input, double norm_type, IntList kernel_size, IntList stride, bool ceil_mode,
               IntList padding, IntList dilation) {
  if (!(norm_type > 0) || !std::isfinite(norm_type)) {
    refuse("lp_pool", "norm_type is {}; it must be above 0 and finite.", norm_type);
  }
  PoolingAttributes attributes =
      attributes_of("lp_pool", EP_POOLING_LP, input, {kernel_size, stride, padding, dilation, ceil_mode});
  attributes.window.p = norm_type;
  const Tensor source = floating(input);
  return apply(OpId::lp_pool, {&source}, &attributes);
}

namespace {

// The attributes of the backward op of a pooling of an input with dims `input_size`.
Sized<PoolingBackwardAttributes> backward_attributes(std::string_view op, int32_t kind, const Tensor& grad_output,
                                                     IntList input_size, const Window& window) {
  const PoolingAttributes forward = attributes_of(op, kind, grad_output, window);
  Sized<PoolingBackwardAttributes> sized;
  sized.attributes.window = forward.window;
  sized.attributes.ceil_mode = forward.ceil_mode;
  const SymDims dims = value_or_throw(checked(op, sym_dims_of(op, input_size)));
  if (dims.rank() != grad_output.rank()) {
    refuse(op, "input_size {} must have the rank of grad_output {}.", dims, sizes(grad_output));
  }
  sized.set(&sized.attributes.dims, std::span(dims.begin(), dims.end()));
  return sized;
}

}  // namespace

Tensor max_pool_with_indices_backward(const Tensor& grad_output, IntList input_size, IntList kernel_size,
                                      IntList stride, IntList padding, IntList dilation, bool ceil_mode,
                                      const Tensor& indices) {
  constexpr std::string_view op = "max_pool_with_indices_backward";
  require_defined(op, "grad_output", grad_output);
  require_defined(op, "indices", indices);
  const Tensor gradient = floating(grad_output);
  const Tensor positions = tenon::cast(as_index(op, "indices", indices), DType::i64);
  return apply(OpId::max_pool_with_indices_backward, {&gradient, &positions},
               backward_attributes(op, EP_POOLING_MAX, gradient, input_size,
                                   {kernel_size, stride, padding, dilation, ceil_mode}));
}

Tensor avg_pool_backward(const Tensor& grad_output, IntList input_size, IntList kernel_size, IntList stride,
                         IntList padding, bool ceil_mode, bool count_include_pad, IntList dilation) {
  constexpr std::string_view op = "avg_pool_backward";
  require_defined(op, "grad_output", grad_output);
  const Tensor gradient = floating(grad_output);
  const int32_t kind = count_include_pad ? EP_POOLING_AVERAGE_INCLUDE_PAD : EP_POOLING_AVERAGE;
  return apply(
      OpId::avg_pool_backward, {&gradient},
      backward_attributes(op, kind, gradient, input_size, {kernel_size, stride, padding, dilation, ceil_mode}));
}

Tensor max_pool2d(const Tensor& input, IntList kernel_size, IntList stride, IntList padding, IntList dilation,
                  bool ceil_mode) {
  require_rank("max_pool2d", input, 4);
  return tenon::max_pool(input, kernel_size, stride, padding, dilation, ceil_mode);
}

Tensor avg_pool2d(const Tensor& input, IntList kernel_size, IntList stride, IntList padding, bool ceil_mode,
                  bool count_include_pad) {
  require_rank("avg_pool2d", input, 4);
  return tenon::avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad);
}

Tensor adaptive_avg_pool(const Tensor& input, IntList output_size) {
  require_defined("adaptive_avg_pool", "input", input);
  const int32_t spatial = window::spatial_rank("adaptive_avg_pool", input);
  int64_t sizes[window::kMaxSpatialRank];
  window::per_axis("adaptive_avg_pool", "output_size", output_size, spatial, sizes);
  Dims kernel;
  bool whole = true;
  for (int32_t i = 0; i < spatial; ++i) {
    if (sizes[i] == 1 && is_open(input) && !(size_at(input, i + 2) == 0)) {
      kernel.push_back(1);
      continue;
    }
    const int64_t dim = input.dim(i + 2);
    if (sizes[i] < 1 || dim % sizes[i] != 0 || dim == 0) {
      refuse("adaptive_avg_pool", "output size {} does not divide spatial axis {} of length {}.", sizes[i], i, dim);
    }
    kernel.push_back(dim / sizes[i]);
    whole = whole && sizes[i] == 1;
  }
  if (!whole) {
    for (int32_t i = 0; i < spatial; ++i) kernel[i] = input.dim(i + 2) / sizes[i];
    return tenon::avg_pool(floating(input), kernel, kernel);
  }
  Dims axes;
  for (int32_t i = 0; i < spatial; ++i) axes.push_back(i + 2);
  return tenon::mean(input, axes, true);
}

}  // namespace tenon::functors
