// softmax and the norms: results have the dtype and dims of the first input.
#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/rules/guards.h"
#include "core/ops/sym_call.h"
#include "primitives/infer/size.h"
#include "primitives/infer/wrong.h"

namespace tenon::ops {
namespace {

template <class Call>
Status like_input(const Call& call, typename Call::Meta* outputs) {
  outputs->dtype = call.inputs[0]->dtype();
  outputs->dims = call.inputs[0]->dims();
  return {};
}

// Ok if the input is floating-point and the lists that are given have its dtype.
template <class Call>
Status check_types(const Call& call) {
  TENON_RETURN_IF_ERROR(require_floating(call, 0, "input"));
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    if (call.inputs[i] == nullptr) continue;
    TENON_RETURN_IF_ERROR(require_dtype(call, i, i == 1 ? "weight" : "bias", call.inputs[0]->dtype()));
  }
  return {};
}

// For a norm over the dims from its axis on; its parameter lists have these dims.
template <class Call>
Status check_rows(const Call& call) {
  const auto& dims = call.inputs[0]->dims();
  const int32_t axis = call.template attributes_as<AxisAttributes>().axis;
  TENON_RETURN_IF_ERROR(require_axis(call, axis, dims.rank()));
  TENON_RETURN_IF_ERROR(check_types(call));
  BasicDims<typename Call::Size> rows;
  for (int32_t i = axis; i < dims.rank(); ++i) rows.push_back(dims[i]);
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    if (call.inputs[i] == nullptr) continue;
    TENON_RETURN_IF_ERROR(require_shape(call, i, i == 1 ? "weight" : "bias", rows));
  }
  return {};
}

// The strides of `tensor`, whose dims are those from `axis` on: 0 along the dims before.
Dims trailing_strides(const Tensor& tensor, int32_t axis) {
  Dims strides = Dims::filled(axis, 0);
  for (const int64_t stride : tensor.strides()) strides.push_back(stride);
  return strides;
}

Dims from(const Dims& values, int32_t axis) {
  return Dims(std::span<const int64_t>(values.begin() + axis, static_cast<size_t>(values.rank() - axis)));
}

// `values` with `rest` from `axis` on.
Dims up_to(const Dims& values, int32_t axis, int64_t rest) {
  Dims result = values;
  for (int32_t i = axis; i < result.rank(); ++i) result[i] = rest;
  return result;
}

}  // namespace

template <class Call>
Status infer_softmax(const Call& call, typename Call::Meta* outputs) {
  return like_input(call, outputs);
}

Status lower_softmax(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const auto& attributes = call.attributes_as<SoftmaxAttributes>();
  const Tensor& input = *call.inputs[0];
  Folding folding(input.dims());
  folding.add(outputs[0].strides);
  folding.add(input.strides());
  lowering->desc.attributes.softmax.axis = folding.fold_around(attributes.axis);
  lowering->desc.attributes.softmax.log = attributes.log;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, folding.dims(), folding.strides(0));
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), folding.dims(), folding.strides(1));
  return {};
}

template <class Call>
Status infer_layer_norm(const Call& call, typename Call::Meta* outputs) {
  TENON_RETURN_IF_ERROR(require_floating(call, 0, "input"));
  for (size_t i : {1, 2}) {
    if (call.inputs[i] == nullptr || call.inputs[i]->dtype() == call.inputs[0]->dtype()) continue;
    return infer::wrong(call.op->name, "{} is {}; it must be {}, as input is.", i == 1 ? "weight" : "bias",
                        dtype_name(call.inputs[i]->dtype()), dtype_name(call.inputs[0]->dtype()));
  }
  return like_input(call, outputs);
}

namespace {

// The descriptor of layer_norm and rms_norm except for their attribute. Returns the axis.
int32_t lower_rows(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const Tensor& input = *call.inputs[0];
  int32_t axis = call.attributes_as<AxisAttributes>().axis;
  Folding folding(input.dims());
  folding.add(outputs[0].strides);
  folding.add(input.strides());
  size_t inputs = 2;
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    if (call.inputs[i] == nullptr) continue;
    folding.add(trailing_strides(*call.inputs[i], axis));
    ++inputs;
  }
  // Mean and 1/std have stride 0 along the normalised axes.
  for (size_t i = 1; i < outputs.size(); ++i) folding.add(up_to(outputs[i].strides, axis, 0));
  const size_t statistics = inputs;
  folding.fold_halves(&axis);
  lowering->scalar_dtypes[0] = outputs[0].dtype;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, folding.dims(), folding.strides(0));
  for (size_t i = 1; i < outputs.size(); ++i) {
    lowering->output(i == 1 ? EP_ROLE_MEAN : EP_ROLE_INV_STD, static_cast<int>(i), outputs[i].dtype,
                     up_to(folding.dims(), axis, 1), up_to(folding.strides(statistics + i - 1), axis, 1));
  }
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), folding.dims(), folding.strides(1));
  size_t operand = 2;
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    if (call.inputs[i] == nullptr) continue;
    const Dims strides = from(folding.strides(operand++), axis);
    lowering->input(i == 1 ? EP_ROLE_SCALE : EP_ROLE_SHIFT, static_cast<int>(i), input.dtype(),
                    from(folding.dims(), axis), strides);
  }
  return axis;
}

}  // namespace

Status lower_layer_norm(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  lowering->desc.attributes.layer_norm.axis = lower_rows(call, outputs, lowering);
  return {};
}

template <class Call>
Status infer_rms_norm(const Call& call, typename Call::Meta* outputs) {
  TENON_RETURN_IF_ERROR(check_rows(call));
  return like_input(call, outputs);
}

Status lower_rms_norm(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  lowering->desc.attributes.rms_norm.axis = lower_rows(call, outputs, lowering);
  return {};
}

template <class Call>
Status infer_group_norm(const Call& call, typename Call::Meta* outputs) {
  const auto& dims = call.inputs[0]->dims();
  const int64_t groups = call.template attributes_as<GroupNormAttributes>().groups;
  if (dims.rank() < 2 || groups < 1 || !expect(modulo(dims[1], groups) == 0)) {
    return infer::wrong(call.op->name, "{} groups do not divide the channels of shape {}.", groups, dims);
  }
  TENON_RETURN_IF_ERROR(check_types(call));
  for (size_t i : {1, 2}) {
    if (call.inputs[i] == nullptr) continue;
    const auto& list = call.inputs[i]->dims();
    if (list.rank() == 1 && expect(list[0] == dims[1])) continue;
    return infer::wrong(call.op->name, "{} has shape {} but must have shape [{}].", i == 1 ? "weight" : "bias", list,
                        dims[1]);
  }
  return like_input(call, outputs);
}

Status lower_group_norm(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const Tensor& input = *call.inputs[0];
  Folding folding(input.dims());
  folding.add(outputs[0].strides);
  folding.add(input.strides());
  uint32_t marked = 0b11;  // images and channels remain separate axes
  folding.fold_marked(&marked);
  lowering->desc.attributes.group_norm.groups = call.attributes_as<GroupNormAttributes>().groups;
  lowering->scalar_dtypes[0] = outputs[0].dtype;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, folding.dims(), folding.strides(0));
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), folding.dims(), folding.strides(1));
  for (size_t i : {1, 2}) {
    const Tensor* list = call.inputs[i];
    if (list == nullptr) continue;
    lowering->input(i == 1 ? EP_ROLE_SCALE : EP_ROLE_SHIFT, static_cast<int>(i), list->dtype(), list->dims(),
                    list_strides(*list));
  }
  return {};
}

template <class Call>
Status infer_batch_norm(const Call& call, typename Call::Meta* outputs) {
  return like_input(call, outputs);
}

Status lower_batch_norm(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  constexpr int32_t roles[] = {EP_ROLE_SCALE, EP_ROLE_SHIFT, EP_ROLE_MEAN, EP_ROLE_VARIANCE};
  const Tensor& input = *call.inputs[0];
  Folding folding(input.dims());
  folding.add(outputs[0].strides);
  folding.add(input.strides());
  const int32_t axis = folding.fold_around(call.attributes_as<AxisAttributes>().axis);
  lowering->desc.attributes.batch_norm.axis = axis;
  lowering->scalar_dtypes[0] = outputs[0].dtype;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, folding.dims(), folding.strides(0));
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), folding.dims(), folding.strides(1));
  for (int i = 1; i <= 4; ++i) {
    const Tensor& list = *call.inputs[static_cast<size_t>(i)];
    lowering->input(roles[i - 1], i, list.dtype(), list.dims(), list_strides(list));
  }
  return {};
}

template Status infer_batch_norm(const OpCall&, TensorMeta*);
template Status infer_batch_norm(const SymCall&, SymMeta*);
template Status infer_layer_norm(const OpCall&, TensorMeta*);
template Status infer_layer_norm(const SymCall&, SymMeta*);
template Status infer_rms_norm(const OpCall&, TensorMeta*);
template Status infer_rms_norm(const SymCall&, SymMeta*);
template Status infer_group_norm(const OpCall&, TensorMeta*);
template Status infer_group_norm(const SymCall&, SymMeta*);
template Status infer_softmax(const OpCall&, TensorMeta*);
template Status infer_softmax(const SymCall&, SymMeta*);

}  // namespace tenon::ops
