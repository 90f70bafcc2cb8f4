// Softmax and the normalisations.
#include "core/ops/functors/apply.h"
#include "core/ops/functors/sized.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

Tensor softmax_of(OpId id, const Tensor& input, int64_t dim, DType dtype) {
  const std::string_view name = op_row(id).name;
  require_defined(name, "input", input);
  const Tensor source = floating(name, dtype == DType::none ? input : tenon::cast(input, dtype));
  SoftmaxAttributes attributes{};
  attributes.axis = axis_of(name, dim, input.rank());
  attributes.log = id == OpId::log_softmax ? 1 : 0;
  if (input.rank() > 0) return apply(id, {&source}, &attributes);
  const Tensor row = tenon::reshape(source, 1);
  return tenon::reshape(apply(id, {&row}, &attributes), IntList());
}

// The first axis of `input` that belongs to normalized_shape, which must be the last dims of `input`.
int32_t first_normalized(std::string_view op, const Tensor& input, IntList normalized_shape) {
  const auto count = static_cast<int32_t>(normalized_shape.size());
  const int32_t first = input.rank() - count;
  bool fits = count > 0 && first >= 0;
  for (int32_t i = 0; fits && i < count; ++i)
    fits = is_open(input) || is_open(normalized_shape)
               ? static_cast<bool>(size_at(input, first + i) == sym_dims_of(op, normalized_shape)[i])
               : input.dims()[first + i] == normalized_shape[static_cast<size_t>(i)];
  if (!fits) {
    refuse(op, "normalized_shape {} is not the end of shape {} of input.", dims_of(op, normalized_shape), input.dims());
  }
  return first;
}

Tensor parameter(std::string_view op, std::string_view name, const Tensor& value, DType dtype, const SymDims& dims) {
  if (!value.defined()) return value;
  if (!same_sizes(sizes(value), dims)) {
    refuse(op, "{} has shape {}, but the shape normalised is {}.", name, sizes(value), dims);
  }
  return tenon::cast(value, dtype);
}

// The gradients of a norm of a tensor without elements: an empty gradient, and zeros for its parameters, with the dims
// `parameters`.
std::tuple<Tensor, Tensor, Tensor> gradients_of_nothing(const Tensor& source, const SymDims& parameters) {
  const Tensor zeros = tenon::zeros(SizeList(parameters), source.dtype(), source.device());
  return {tenon::zeros_like(source), zeros, tenon::clone(zeros)};
}

}  // namespace

Tensor softmax(const Tensor& input, int64_t dim, DType dtype) { return softmax_of(OpId::softmax, input, dim, dtype); }
Tensor log_softmax(const Tensor& input, int64_t dim, DType dtype) {
  return softmax_of(OpId::log_softmax, input, dim, dtype);
}

Tensor layer_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight, const Tensor& bias, double eps) {
  const Tensor source = floating("layer_norm", input);
  AxisAttributes attributes{};
  attributes.axis = first_normalized("layer_norm", input, normalized_shape);
  const SymDims dims = sym_dims_of("layer_norm", normalized_shape);
  const Tensor scale = parameter("layer_norm", "weight", weight, source.dtype(), dims);
  const Tensor shift = parameter("layer_norm", "bias", bias, source.dtype(), dims);
  const Scalar scalars[] = {Scalar(eps)};
  return apply(OpId::layer_norm, {&source, or_null(scale), or_null(shift)}, &attributes, scalars);
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_with_statistics(const Tensor& input, IntList normalized_shape,
                                                              const Tensor& weight, const Tensor& bias, double eps) {
  constexpr std::string_view op = "layer_norm_with_statistics";
  const Tensor source = floating(op, input);
  AxisAttributes attributes{};
  attributes.axis = first_normalized(op, input, normalized_shape);
  const SymDims dims = sym_dims_of(op, normalized_shape);
  if (element_count(dims) == 0) refuse(op, "normalized_shape {} has no elements.", dims);
  const Tensor scale = parameter(op, "weight", weight, source.dtype(), dims);
  const Tensor shift = parameter(op, "bias", bias, source.dtype(), dims);
  const Scalar scalars[] = {Scalar(eps)};
  const Tensor* inputs[] = {&source, or_null(scale), or_null(shift)};
  Tensor outputs[3];
  apply(OpId::layer_norm_with_statistics, inputs, &attributes, outputs, scalars);
  return {outputs[0], outputs[1], outputs[2]};
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward(const Tensor& grad_out, const Tensor& input,
                                                       IntList normalized_shape, const Tensor& mean, const Tensor& rstd,
                                                       const Tensor& weight) {
  constexpr std::string_view op = "layer_norm_backward";
  require_defined(op, "grad_out", grad_out);
  require_defined(op, "mean", mean);
  require_defined(op, "rstd", rstd);
  const Tensor source = floating(op, input);
  AxisAttributes attributes{};
  attributes.axis = first_normalized(op, input, normalized_shape);
  const SymDims dims = sym_dims_of(op, normalized_shape);
  const Tensor scale = parameter(op, "weight", weight, source.dtype(), dims);
  if (is_empty(source)) return gradients_of_nothing(source, dims);
  const Tensor gradient = tenon::cast(grad_out, source.dtype());
  const Tensor* inputs[] = {&gradient, &source, &mean, &rstd, or_null(scale)};
  Tensor outputs[3];
  apply(OpId::layer_norm_backward, inputs, &attributes, outputs);
  return {outputs[0], outputs[1], outputs[2]};
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_with_statistics(const Tensor& input, const Tensor& weight,
                                                              const Tensor& bias, double eps) {
  constexpr std::string_view op = "batch_norm_with_statistics";
  const Tensor source = floating(op, input);
  if (input.rank() < 2) refuse(op, "input has rank {}; it must have channels at axis 1.", input.rank());
  if (is_empty(input)) refuse(op, "input of shape {} has no elements.", input.dims());
  const SymDims channels{size_at(input, 1)};
  Tensor scale = parameter(op, "weight", weight, source.dtype(), channels);
  Tensor shift = parameter(op, "bias", bias, source.dtype(), channels);
  if (shift.defined() && !scale.defined()) scale = tenon::ones_like(shift);
  if (scale.defined() && !shift.defined()) shift = tenon::zeros_like(scale);
  AxisAttributes attributes{};
  attributes.axis = 1;
  const Scalar scalars[] = {Scalar(eps)};
  const Tensor* inputs[] = {&source, or_null(scale), or_null(shift)};
  Tensor outputs[3];
  apply(OpId::batch_norm_with_statistics, inputs, &attributes, outputs, scalars);
  return {outputs[0], outputs[1], outputs[2]};
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward(const Tensor& grad_out, const Tensor& input,
                                                       const Tensor& weight, const Tensor& save_mean,
                                                       const Tensor& save_invstd) {
  constexpr std::string_view op = "batch_norm_backward";
  require_defined(op, "grad_out", grad_out);
  require_defined(op, "save_mean", save_mean);
  require_defined(op, "save_invstd", save_invstd);
  const Tensor source = floating(op, input);
  if (input.rank() < 2) refuse(op, "input has rank {}; it must have channels at axis 1.", input.rank());
  const Tensor scale = parameter(op, "weight", weight, source.dtype(), SymDims{size_at(input, 1)});
  if (is_empty(source)) return gradients_of_nothing(source, SymDims{size_at(input, 1)});
  const Tensor gradient = tenon::cast(grad_out, source.dtype());
  AxisAttributes attributes{};
  attributes.axis = 1;
  const Tensor* inputs[] = {&gradient, &source, or_null(scale), &save_mean, &save_invstd};
  Tensor outputs[3];
  apply(OpId::batch_norm_backward, inputs, &attributes, outputs);
  return {outputs[0], outputs[1], outputs[2]};
}

Tensor rms_norm(const Tensor& input, IntList normalized_shape, const Tensor& weight, std::optional<double> eps) {
  const Tensor source = floating("rms_norm", input);
  AxisAttributes attributes{};
  attributes.axis = first_normalized("rms_norm", input, normalized_shape);
  const Tensor scale =
      parameter("rms_norm", "weight", weight, source.dtype(), sym_dims_of("rms_norm", normalized_shape));
  const Scalar scalars[] = {Scalar(eps.value_or(epsilon(source.dtype())))};
  return apply(OpId::rms_norm, {&source, or_null(scale)}, &attributes, scalars);
}

Tensor batch_norm(const Tensor& input, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                  const Tensor& bias, double eps) {
  const Tensor source = floating("batch_norm", input);
  require_defined("batch_norm", "running_mean", running_mean);
  require_defined("batch_norm", "running_var", running_var);
  if (input.rank() < 2) refuse("batch_norm", "input has rank {}; it must have channels at axis 1.", input.rank());
  const SymDims channels{size_at(input, 1)};
  const DType dtype = source.dtype();
  const Tensor mean = parameter("batch_norm", "running_mean", running_mean, dtype, channels);
  const Tensor variance = parameter("batch_norm", "running_var", running_var, dtype, channels);
  Tensor scale = parameter("batch_norm", "weight", weight, dtype, channels);
  Tensor shift = parameter("batch_norm", "bias", bias, dtype, channels);
  if (!scale.defined()) scale = tenon::ones_like(mean);
  if (!shift.defined()) shift = tenon::zeros_like(mean);
  AxisAttributes attributes{};
  attributes.axis = 1;
  const Scalar scalars[] = {Scalar(eps)};
  return apply(OpId::batch_norm, {&source, &scale, &shift, &mean, &variance}, &attributes, scalars);
}

Tensor group_norm(const Tensor& input, int64_t num_groups, const Tensor& weight, const Tensor& bias, double eps) {
  const Tensor source = floating("group_norm", input);
  if (input.rank() < 2) refuse("group_norm", "input has rank {}; it must have channels at axis 1.", input.rank());
  if (num_groups < 1 || !(modulo(size_at(input, 1), num_groups) == 0)) {
    refuse("group_norm", "{} groups do not divide {} channels.", num_groups, size_at(input, 1));
  }
  const SymDims channels{size_at(input, 1)};
  const Tensor scale = parameter("group_norm", "weight", weight, source.dtype(), channels);
  const Tensor shift = parameter("group_norm", "bias", bias, source.dtype(), channels);
  GroupNormAttributes attributes{};
  attributes.groups = num_groups;
  const Scalar scalars[] = {Scalar(eps)};
  return apply(OpId::group_norm, {&source, or_null(scale), or_null(shift)}, &attributes, scalars);
}

Tensor instance_norm(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps) {
  require_defined("instance_norm", "input", input);
  if (input.rank() < 2) refuse("instance_norm", "input has rank {}; it must have channels at axis 1.", input.rank());
  return tenon::group_norm(input, input.dim(1), weight, bias, eps);
}

}  // namespace tenon::functors
