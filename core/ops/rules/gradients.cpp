// Rules for training: norms that return their statistics, and the backward ops of norms, convolution and pooling.
#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/sym_call.h"
#include "primitives/infer/convolution-inl.h"
#include "primitives/infer/reduce-inl.h"

namespace tenon::ops {
namespace {

DType statistics_type(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// Ok if `got`, called `name`, has the dims `wanted`.
template <class Size>
Status require_dims(std::string_view op, std::string_view name, const BasicDims<Size>& got,
                    const BasicDims<Size>& wanted) {
  bool same = got.rank() == wanted.rank();
  for (int32_t axis = 0; same && axis < got.rank(); ++axis) same = expect(got[axis] == wanted[axis]);
  return same ? Status() : infer::wrong(op, "{} has shape {}, but the op gives {}.", name, got, wanted);
}

template <class Call>
Status require_type(const Call& call, size_t index, std::string_view name, DType wanted) {
  const DType dtype = call.inputs[index]->dtype();
  if (dtype == wanted) return {};
  return infer::wrong(call.op->name, "{} is {} but must be {}.", name, dtype_name(dtype), dtype_name(wanted));
}

// `dims` from `axis` on; or `dims` with 1 from `axis` on.
template <class Size>
BasicDims<Size> from(const BasicDims<Size>& dims, int32_t axis) {
  BasicDims<Size> result;
  for (int32_t i = axis; i < dims.rank(); ++i) result.push_back(dims[i]);
  return result;
}
template <class Size>
BasicDims<Size> ones_from(const BasicDims<Size>& dims, int32_t axis) {
  BasicDims<Size> result = dims;
  for (int32_t i = axis; i < dims.rank(); ++i) result[i] = Size(1);
  return result;
}

// The sizes in the attributes as the dims of a tensor.
template <class Call>
BasicDims<typename Call::Size> dims_of(const Call& call, const DimsAttribute& list) {
  const auto sizes = sizes_of(call, list);
  return BasicDims<typename Call::Size>(std::span<const typename Call::Size>(sizes));
}

// The strides of a tensor that has the last ones of `rank` axes: 0 along the others.
Dims trailing(const Dims& strides, int32_t rank) {
  Dims result = Dims::filled(rank - strides.rank(), 0);
  for (const int64_t stride : strides) result.push_back(stride);
  return result;
}

// The strides of a tensor with 1 from `axis` on.
Dims leading(const Dims& strides, int32_t axis) {
  Dims result = strides;
  for (int32_t i = axis; i < result.rank(); ++i) result[i] = 0;
  return result;
}

Dims with_unit_strides(const Dims& strides, int32_t axis) {
  Dims result = strides;
  for (int32_t i = axis; i < result.rank(); ++i) result[i] = 1;
  return result;
}

// The axes from `axis` on, as a mask.
uint32_t axes_from(int32_t axis, int32_t rank) { return ((1u << rank) - 1) & ~((1u << axis) - 1); }

}  // namespace

template <class Call>
Status infer_layer_norm_with_statistics(const Call& call, typename Call::Meta* outputs) {
  const auto& input = *call.inputs[0];
  const int32_t axis = call.template attributes_as<AxisAttributes>().axis;
  TENON_RETURN_IF_ERROR(infer::require_elements(call.op->name, input.dims(), axes_from(axis, input.rank())));
  outputs[0].dtype = input.dtype();
  outputs[0].dims = input.dims();
  for (int i : {1, 2}) {
    outputs[i].dtype = statistics_type(input.dtype());
    outputs[i].dims = ones_from(input.dims(), axis);
  }
  return {};
}

// Inputs: the gradient, input, mean, 1/std and the weight, which may be absent.
template <class Call>
Status infer_layer_norm_backward(const Call& call, typename Call::Meta* outputs) {
  const auto& input = *call.inputs[1];
  const int32_t axis = call.template attributes_as<AxisAttributes>().axis;
  TENON_RETURN_IF_ERROR(require_dims(call.op->name, "grad_out", call.inputs[0]->dims(), input.dims()));
  TENON_RETURN_IF_ERROR(require_type(call, 0, "grad_out", input.dtype()));
  for (const size_t i : {2, 3}) {
    const std::string_view name = i == 2 ? "mean" : "rstd";
    TENON_RETURN_IF_ERROR(require_type(call, i, name, statistics_type(input.dtype())));
    TENON_RETURN_IF_ERROR(require_dims(call.op->name, name, call.inputs[i]->dims(), ones_from(input.dims(), axis)));
  }
  outputs[0].dims = input.dims();
  for (int i : {1, 2}) outputs[i].dims = from(input.dims(), axis);
  for (int i : {0, 1, 2}) outputs[i].dtype = input.dtype();
  return {};
}

Status lower_layer_norm_backward(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const Tensor& gradient = *call.inputs[0];
  const Tensor& input = *call.inputs[1];
  const Tensor* weight = call.inputs[4];
  const int32_t given = call.attributes_as<AxisAttributes>().axis;
  int32_t axis = given;
  Folding folding(input.dims());
  folding.add(outputs[0].strides);
  for (int i : {1, 2}) folding.add(trailing(outputs[static_cast<size_t>(i)].strides, input.rank()));
  folding.add(input.strides());
  for (int i : {2, 3}) folding.add(leading(call.inputs[static_cast<size_t>(i)]->strides(), given));
  folding.add(gradient.strides());
  if (weight != nullptr) folding.add(trailing(weight->strides(), input.rank()));
  folding.fold_halves(&axis);
  const Dims parameters = from(folding.dims(), axis);
  const Dims statistics = ones_from(folding.dims(), axis);
  lowering->desc.attributes.layer_norm_backward.axis = axis;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, folding.dims(), folding.strides(0));
  lowering->output(EP_ROLE_SCALE_GRADIENT, 1, outputs[1].dtype, parameters, from(folding.strides(1), axis));
  lowering->output(EP_ROLE_SHIFT_GRADIENT, 2, outputs[2].dtype, parameters, from(folding.strides(2), axis));
  lowering->input(EP_ROLE_SRC, 1, input.dtype(), folding.dims(), folding.strides(3));
  if (weight != nullptr) {
    lowering->input(EP_ROLE_SCALE, 4, weight->dtype(), parameters, from(folding.strides(7), axis));
  }
  lowering->input(EP_ROLE_MEAN, 2, input_dtype(call, 2), statistics, with_unit_strides(folding.strides(4), axis));
  lowering->input(EP_ROLE_INV_STD, 3, input_dtype(call, 3), statistics, with_unit_strides(folding.strides(5), axis));
  lowering->input(EP_ROLE_GRADIENT, 0, gradient.dtype(), folding.dims(), folding.strides(6));
  return {};
}

template <class Call>
Status infer_batch_norm_training(const Call& call, typename Call::Meta* outputs) {
  const auto& input = *call.inputs[0];
  const int32_t axis = call.template attributes_as<AxisAttributes>().axis;
  const uint32_t reduced = axes_from(0, input.rank()) & ~(1u << axis);
  TENON_RETURN_IF_ERROR(infer::require_elements(call.op->name, input.dims(), reduced));
  outputs[0].dtype = input.dtype();
  outputs[0].dims = input.dims();
  for (int i : {1, 2}) {
    outputs[i].dtype = statistics_type(input.dtype());
    outputs[i].dims = {input.dims()[axis]};
  }
  return {};
}

Status lower_batch_norm_training(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const Tensor& input = *call.inputs[0];
  Folding folding(input.dims());
  folding.add(outputs[0].strides);
  folding.add(input.strides());
  lowering->desc.attributes.batch_norm_training.axis = folding.fold_around(call.attributes_as<AxisAttributes>().axis);
  lowering->scalar_dtypes[0] = outputs[0].dtype;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, folding.dims(), folding.strides(0));
  lowering->output(EP_ROLE_MEAN, 1, outputs[1].dtype, outputs[1].dims, Dims{1});
  lowering->output(EP_ROLE_INV_STD, 2, outputs[2].dtype, outputs[2].dims, Dims{1});
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), folding.dims(), folding.strides(1));
  for (int i : {1, 2}) {
    const Tensor* list = call.inputs[static_cast<size_t>(i)];
    if (list == nullptr) continue;
    lowering->input(i == 1 ? EP_ROLE_SCALE : EP_ROLE_SHIFT, i, list->dtype(), list->dims(), list_strides(*list));
  }
  return {};
}

// Inputs: the gradient, input, the weight, which may be absent, mean and 1/std.
template <class Call>
Status infer_batch_norm_backward(const Call& call, typename Call::Meta* outputs) {
  using Size = typename Call::Size;
  const auto& input = *call.inputs[1];
  const BasicDims<Size> list = {input.dims()[call.template attributes_as<AxisAttributes>().axis]};
  TENON_RETURN_IF_ERROR(require_dims(call.op->name, "grad_out", call.inputs[0]->dims(), input.dims()));
  TENON_RETURN_IF_ERROR(require_type(call, 0, "grad_out", input.dtype()));
  for (const size_t i : {3, 4}) {
    const std::string_view name = i == 3 ? "save_mean" : "save_invstd";
    TENON_RETURN_IF_ERROR(require_type(call, i, name, statistics_type(input.dtype())));
    TENON_RETURN_IF_ERROR(require_dims(call.op->name, name, call.inputs[i]->dims(), list));
  }
  outputs[0].dims = input.dims();
  for (int i : {1, 2}) outputs[i].dims = list;
  for (int i : {0, 1, 2}) outputs[i].dtype = input.dtype();
  return {};
}

Status lower_batch_norm_backward(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  constexpr struct {
    int32_t role;
    int input;
  } lists[] = {{EP_ROLE_SCALE, 2}, {EP_ROLE_MEAN, 3}, {EP_ROLE_INV_STD, 4}};
  const Tensor& gradient = *call.inputs[0];
  const Tensor& input = *call.inputs[1];
  Folding folding(input.dims());
  folding.add(outputs[0].strides);
  folding.add(input.strides());
  folding.add(gradient.strides());
  lowering->desc.attributes.batch_norm_backward.axis = folding.fold_around(call.attributes_as<AxisAttributes>().axis);
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, folding.dims(), folding.strides(0));
  lowering->output(EP_ROLE_SCALE_GRADIENT, 1, outputs[1].dtype, outputs[1].dims, Dims{1});
  lowering->output(EP_ROLE_SHIFT_GRADIENT, 2, outputs[2].dtype, outputs[2].dims, Dims{1});
  lowering->input(EP_ROLE_SRC, 1, input.dtype(), folding.dims(), folding.strides(1));
  for (const auto& [role, i] : lists) {
    const Tensor* list = call.inputs[static_cast<size_t>(i)];
    if (list != nullptr) lowering->input(role, i, list->dtype(), list->dims(), list_strides(*list));
  }
  lowering->input(EP_ROLE_GRADIENT, 0, gradient.dtype(), folding.dims(), folding.strides(2));
  return {};
}

// Inputs: input and the gradient.
template <class Call>
Status infer_convolution_weight(const Call& call, typename Call::Meta* outputs) {
  using Size = typename Call::Size;
  const auto& attributes = call.template attributes_as<ConvolutionWeightAttributes>();
  const ep_convolution_weight_attributes& at = attributes.window;
  ep_convolution_attributes forward{};
  forward.spatial_rank = at.spatial_rank;
  forward.groups = at.groups;
  for (int32_t i = 0; i < at.spatial_rank; ++i) {
    forward.stride[i] = at.stride[i];
    forward.dilation[i] = at.dilation[i];
    forward.pad_low[i] = at.pad_low[i];
    forward.pad_high[i] = at.pad_high[i];
  }
  const auto dims = dims_of(call, attributes.dims);
  const auto low = sizes_of(call, at.pad_low, 3);
  const auto high = sizes_of(call, at.pad_high, 3);
  TENON_ASSIGN_OR_RETURN(const auto result, infer::convolution<Size>(call.op->name, call.inputs[0]->dims(), dims,
                                                                     nullptr, forward, low, high, {}));
  TENON_RETURN_IF_ERROR(require_dims(call.op->name, "grad_output", call.inputs[1]->dims(), result));
  TENON_RETURN_IF_ERROR(require_type(call, 1, "grad_output", call.inputs[0]->dtype()));
  outputs->dims = dims;
  outputs->dtype = call.inputs[0]->dtype();
  return {};
}

Status lower_convolution_weight(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  lowering->desc.attributes.convolution_weight = call.attributes_as<ConvolutionWeightAttributes>().window;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, outputs[0].dims, outputs[0].strides);
  lowering->input(EP_ROLE_SRC, 0, input_dtype(call, 0), call.inputs[0]->dims(), call.inputs[0]->strides());
  lowering->input(EP_ROLE_GRADIENT, 1, input_dtype(call, 1), call.inputs[1]->dims(), call.inputs[1]->strides());
  return {};
}

// Inputs: the gradient; for max pooling also the indices.
template <class Call>
Status infer_pooling_backward(const Call& call, typename Call::Meta* outputs) {
  using Size = typename Call::Size;
  const auto& attributes = call.template attributes_as<PoolingBackwardAttributes>();
  const auto dims = dims_of(call, attributes.dims);
  const auto low = sizes_of(call, attributes.window.pad_low, 3);
  const auto high = sizes_of(call, attributes.window.pad_high, 3);
  TENON_ASSIGN_OR_RETURN(const auto result, infer::pooling<Size>(call.op->name, dims, attributes.window, low, high,
                                                                 attributes.ceil_mode != 0));
  TENON_RETURN_IF_ERROR(require_dims(call.op->name, "grad_output", call.inputs[0]->dims(), result));
  if (call.inputs.size() > 1) {
    TENON_RETURN_IF_ERROR(require_dims(call.op->name, "indices", call.inputs[1]->dims(), result));
    TENON_RETURN_IF_ERROR(require_type(call, 1, "indices", DType::i64));
  }
  outputs->dims = dims;
  outputs->dtype = call.inputs[0]->dtype();
  return {};
}

Status lower_pooling_backward(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  lowering->desc.attributes.pooling_backward = call.attributes_as<PoolingBackwardAttributes>().window;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, outputs[0].dims, outputs[0].strides);
  if (call.inputs.size() > 1) {
    lowering->input(EP_ROLE_INDICES, 1, DType::i64, call.inputs[1]->dims(), call.inputs[1]->strides());
  }
  lowering->input(EP_ROLE_GRADIENT, 0, input_dtype(call, 0), call.inputs[0]->dims(), call.inputs[0]->strides());
  return {};
}

template Status infer_batch_norm_backward(const OpCall&, TensorMeta*);
template Status infer_batch_norm_backward(const SymCall&, SymMeta*);
template Status infer_batch_norm_training(const OpCall&, TensorMeta*);
template Status infer_batch_norm_training(const SymCall&, SymMeta*);
template Status infer_convolution_weight(const OpCall&, TensorMeta*);
template Status infer_convolution_weight(const SymCall&, SymMeta*);
template Status infer_layer_norm_backward(const OpCall&, TensorMeta*);
template Status infer_layer_norm_backward(const SymCall&, SymMeta*);
template Status infer_layer_norm_with_statistics(const OpCall&, TensorMeta*);
template Status infer_layer_norm_with_statistics(const SymCall&, SymMeta*);
template Status infer_pooling_backward(const OpCall&, TensorMeta*);
template Status infer_pooling_backward(const SymCall&, SymMeta*);

}  // namespace tenon::ops
