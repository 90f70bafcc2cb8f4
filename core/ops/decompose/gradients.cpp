// Decompositions of norms that return their statistics, and of backward ops.
#include "core/ops/decompose/result.h"
#include "core/ops/rules.h"

namespace tenon::ops {
namespace {

// Stores `result` as output `i`, in the op's dtype.
void store(const OpCall& call, size_t i, const Tensor& result, DType dtype) {
  const Tensor converted = cast(result, dtype);
  if (call.outputs[i].defined()) {
    copy_(call.outputs[i], converted);
  } else {
    call.outputs[i] = converted;
  }
}

DType statistics_type(const Tensor& x) { return x.dtype() == DType::f64 ? DType::f64 : DType::f32; }

// `x` in the dtype for sums: f32 for narrow floats.
Tensor wide(const Tensor& x) { return cast(x, statistics_type(x)); }

Dims axes_between(int32_t begin, int32_t end) {
  Dims axes;
  for (int32_t axis = begin; axis < end; ++axis) axes.push_back(axis);
  return axes;
}

// All axes of `x` except `axis`.
Dims other_axes(const Tensor& x, int32_t axis) {
  Dims axes;
  for (int32_t i = 0; i < x.rank(); ++i) {
    if (i != axis) axes.push_back(i);
  }
  return axes;
}

// `list`, one element per channel, as a tensor that broadcasts along the other axes of x.
Tensor channels(const Tensor& list, const Tensor& x, int32_t axis) {
  Dims dims = Dims::filled(x.rank() - axis, 1);
  dims[0] = list.elements();
  return reshape(wide(list), dims);
}

struct Statistics {
  Tensor mean, inv_std;
};

Statistics measured(const Tensor& x, const Dims& axes, const Scalar& eps) {
  const Tensor average = mean(x, axes, true);
  const Tensor centred = sub(x, average);
  return {average, div(Scalar(1.0), sqrt(add(mean(mul(centred, centred), axes, true), eps)))};
}

// The gradient of the input of (x - mean) * inv_std, given the gradient `scaled` of that product and its value
// `normal`.
Tensor through_norm(const Tensor& scaled, const Tensor& normal, const Tensor& inv_std, const Dims& axes) {
  const Tensor slope = mean(mul(scaled, normal), axes, true);
  return mul(inv_std, sub(sub(scaled, mean(scaled, axes, true)), mul(normal, slope)));
}

// `length` elements of `x` along `axis`, from `start` on.
Tensor part(const Tensor& x, int64_t axis, int64_t start, int64_t length) { return narrow(x, axis, start, length); }

// The gradient of the weights of one group: a convolution that uses channels as images and the gradient as weights,
// with strides and dilations exchanged.
Tensor grad_weight(const Tensor& x, const Tensor& gradient, const ep_convolution_weight_attributes& at,
                   const Dims& weight) {
  std::vector<int64_t> stride, dilation, padding;
  for (int32_t i = 0; i < at.spatial_rank; ++i) {
    stride.push_back(at.dilation[i]);
    dilation.push_back(at.stride[i]);
    padding.push_back(at.pad_low[i]);
  }
  for (int32_t i = 0; i < at.spatial_rank; ++i) padding.push_back(at.pad_high[i]);
  Tensor result = conv(transpose(x, 0, 1), transpose(gradient, 0, 1), Tensor(), stride, padding, dilation, 1);
  for (int32_t i = 0; i < at.spatial_rank; ++i) result = part(result, i + 2, 0, weight[i + 2]);
  return transpose(result, 0, 1);
}

}  // namespace

void decompose_layer_norm_with_statistics(const OpCall& call) {
  const Tensor x = wide(input(call, 0));
  const Dims axes = axes_between(call.attributes_as<AxisAttributes>().axis, x.rank());
  const Statistics of = measured(x, axes, call.scalars[0]);
  Tensor result = mul(sub(x, of.mean), of.inv_std);
  const Tensor scale = optional(call, 1);
  const Tensor shift = optional(call, 2);
  if (scale.defined()) result = mul(result, wide(scale));
  if (shift.defined()) result = add(result, wide(shift));
  store(call, 0, result, input(call, 0).dtype());
  store(call, 1, of.mean, x.dtype());
  store(call, 2, of.inv_std, x.dtype());
}

void decompose_layer_norm_backward(const OpCall& call) {
  const DType dtype = input(call, 1).dtype();
  const Tensor gradient = wide(input(call, 0));
  const Tensor inv_std = input(call, 3);
  const Tensor normal = mul(sub(wide(input(call, 1)), input(call, 2)), inv_std);
  const int32_t axis = call.attributes_as<AxisAttributes>().axis;
  const Tensor scale = optional(call, 4);
  const Tensor scaled = scale.defined() ? mul(gradient, wide(scale)) : gradient;
  const Dims rows = axes_between(0, axis);
  const auto summed = [&](const Tensor& x) { return axis == 0 ? x : sum(x, rows); };
  store(call, 0, through_norm(scaled, normal, inv_std, axes_between(axis, normal.rank())), dtype);
  store(call, 1, summed(mul(gradient, normal)), dtype);
  store(call, 2, summed(gradient), dtype);
}

void decompose_batch_norm_with_statistics(const OpCall& call) {
  const Tensor x = wide(input(call, 0));
  const int32_t axis = call.attributes_as<AxisAttributes>().axis;
  const Statistics of = measured(x, other_axes(x, axis), call.scalars[0]);
  Tensor result = mul(sub(x, of.mean), of.inv_std);
  const Tensor scale = optional(call, 1);
  const Tensor shift = optional(call, 2);
  if (scale.defined()) result = mul(result, channels(scale, x, axis));
  if (shift.defined()) result = add(result, channels(shift, x, axis));
  store(call, 0, result, input(call, 0).dtype());
  store(call, 1, reshape(of.mean, -1), x.dtype());
  store(call, 2, reshape(of.inv_std, -1), x.dtype());
}

void decompose_batch_norm_backward(const OpCall& call) {
  const DType dtype = input(call, 1).dtype();
  const Tensor gradient = wide(input(call, 0));
  const Tensor x = wide(input(call, 1));
  const int32_t axis = call.attributes_as<AxisAttributes>().axis;
  const Tensor inv_std = channels(input(call, 4), x, axis);
  const Tensor normal = mul(sub(x, channels(input(call, 3), x, axis)), inv_std);
  const Tensor scale = optional(call, 2);
  const Tensor scaled = scale.defined() ? mul(gradient, channels(scale, x, axis)) : gradient;
  const Dims axes = other_axes(x, axis);
  store(call, 0, through_norm(scaled, normal, inv_std, axes), dtype);
  store(call, 1, sum(mul(gradient, normal), axes), dtype);
  store(call, 2, sum(gradient, axes), dtype);
}

void decompose_conv_grad_weight(const OpCall& call) {
  const auto& attributes = call.attributes_as<ConvolutionWeightAttributes>();
  const Tensor& x = input(call, 0);
  const Tensor& gradient = input(call, 1);
  const int64_t groups = attributes.window.groups;
  const int64_t in = x.dims()[1] / groups;
  const int64_t out = gradient.dims()[1] / groups;
  const Dims weight = attributes.dims.dims();
  std::vector<Tensor> parts;
  for (int64_t group = 0; group < groups; ++group) {
    parts.push_back(
        grad_weight(part(x, 1, group * in, in), part(gradient, 1, group * out, out), attributes.window, weight));
  }
  store(call, groups == 1 ? parts[0] : concat(parts, 0));
}

void decompose_max_pool_with_indices_backward(const OpCall& call) {
  const Tensor& gradient = input(call, 0);
  const Dims dims = call.attributes_as<PoolingBackwardAttributes>().dims.dims();
  const auto planes = [&](const Tensor& x) { return flatten(x, 2); };
  const Tensor zeros = tenon::zeros({dims[0], dims[1], element_count(dims) / std::max<int64_t>(dims[0] * dims[1], 1)},
                                    gradient.dtype(), gradient.device());
  store(call, reshape(scatter_add(zeros, 2, planes(input(call, 1)), planes(gradient)), dims));
}

}  // namespace tenon::ops
