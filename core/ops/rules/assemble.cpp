// Rules of gather, concat, split and pad.
#include <vector>

#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/rules/guards.h"
#include "core/ops/sym_call.h"
#include "primitives/infer/assemble-inl.h"

namespace tenon::ops {
namespace {

Dims as_dims(const int64_t* values, int32_t rank) {
  return Dims(std::span<const int64_t>(values, static_cast<size_t>(rank)));
}

void lower_slices(const OpCall& call, const TensorMeta& output, int32_t axis, Lowering* lowering) {
  const Tensor& src = *call.inputs[0];
  const Tensor& indices = *call.inputs[1];
  simplify::GatherFold fold{};
  fold.src_rank = src.rank();
  fold.indices_rank = indices.rank();
  fold.axis = axis;
  std::copy(src.dims().begin(), src.dims().end(), fold.src_dims);
  std::copy(src.strides().begin(), src.strides().end(), fold.src_strides);
  std::copy(indices.dims().begin(), indices.dims().end(), fold.indices_dims);
  std::copy(indices.strides().begin(), indices.strides().end(), fold.indices_strides);
  std::copy(output.strides.begin(), output.strides.end(), fold.dst_strides);
  simplify::fold_gather(&fold);
  Dims dst = as_dims(fold.src_dims, fold.axis);
  for (int32_t i = 0; i < fold.indices_rank; ++i) dst.push_back(fold.indices_dims[i]);
  for (int32_t i = fold.axis + 1; i < fold.src_rank; ++i) dst.push_back(fold.src_dims[i]);
  lowering->desc.attributes.gather.axis = fold.axis;
  lowering->desc.attributes.gather.mode = EP_GATHER_SLICES;
  lowering->output(EP_ROLE_DST, 0, output.dtype, dst, as_dims(fold.dst_strides, dst.rank()));
  lowering->input(EP_ROLE_SRC, 0, src.dtype(), as_dims(fold.src_dims, fold.src_rank),
                  as_dims(fold.src_strides, fold.src_rank));
  lowering->input(EP_ROLE_INDICES, 1, indices.dtype(), as_dims(fold.indices_dims, fold.indices_rank),
                  as_dims(fold.indices_strides, fold.indices_rank));
}

void lower_elements(const OpCall& call, const TensorMeta& output, int32_t axis, Lowering* lowering) {
  const Tensor& src = *call.inputs[0];
  const Tensor& indices = *call.inputs[1];
  Folding folding(indices.dims());
  folding.add(output.strides);
  folding.add(src.strides());
  folding.add(indices.strides());
  const int32_t folded = folding.fold_around(axis);
  lowering->desc.attributes.gather.axis = folded;
  lowering->desc.attributes.gather.mode = EP_GATHER_ELEMENTS;
  lowering->output(EP_ROLE_DST, 0, output.dtype, folding.dims(), folding.strides(0));
  lowering->input(EP_ROLE_SRC, 0, src.dtype(), folding.dims_with(folded, src.dims()[axis]), folding.strides(1));
  lowering->input(EP_ROLE_INDICES, 1, indices.dtype(), folding.dims(), folding.strides(2));
}

}  // namespace

template <class Call>
Status infer_gather_slices(const Call& call, typename Call::Meta* outputs) {
  const int32_t axis = call.template attributes_as<AxisAttributes>().axis;
  TENON_ASSIGN_OR_RETURN(outputs->dims, infer::gather_slices<typename Call::Size>(call.op->name, call.inputs[0]->dims(),
                                                                                  axis, call.inputs[1]->dims()));
  outputs->dtype = call.inputs[0]->dtype();
  return {};
}

template <class Call>
Status infer_gather_elements(const Call& call, typename Call::Meta* outputs) {
  const int32_t axis = call.template attributes_as<AxisAttributes>().axis;
  TENON_ASSIGN_OR_RETURN(outputs->dims, infer::gather_elements<typename Call::Size>(
                                            call.op->name, call.inputs[0]->dims(), axis, call.inputs[1]->dims()));
  outputs->dtype = call.inputs[0]->dtype();
  return {};
}

template <class Call>
Status infer_gather_nd(const Call& call, typename Call::Meta* outputs) {
  const auto [batch, count] = call.template attributes_as<CoordinatesAttributes>();
  const auto& input = call.inputs[0]->dims();
  const auto& indices = call.inputs[1]->dims();
  TENON_RETURN_IF_ERROR(require_coordinates(call, batch, count));
  outputs->dtype = call.inputs[0]->dtype();
  outputs->dims = infer::gather_coordinates<typename Call::Size>(input, indices, batch, count);
  return checked_numbers(call, outputs->dims);
}

Status lower_gather(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  if (call.op->infer == infer_gather_nd<OpCall>) {
    const Tensor& src = *call.inputs[0];
    const Tensor& indices = *call.inputs[1];
    lowering->desc.attributes.gather = {call.attributes_as<CoordinatesAttributes>().batch, EP_GATHER_COORDINATES};
    lowering->output(EP_ROLE_DST, 0, src.dtype(), outputs[0].dims, outputs[0].strides);
    lowering->input(EP_ROLE_SRC, 0, src.dtype(), src.dims(), src.strides());
    lowering->input(EP_ROLE_INDICES, 1, indices.dtype(), indices.dims(), indices.strides());
    return {};
  }
  const int32_t axis = call.attributes_as<AxisAttributes>().axis;
  if (call.op->infer == infer_gather_slices<OpCall>) {
    lower_slices(call, outputs[0], axis, lowering);
  } else {
    lower_elements(call, outputs[0], axis, lowering);
  }
  return {};
}

template <class Call>
Status infer_concat(const Call& call, typename Call::Meta* outputs) {
  const auto shapes = shapes_of(call);
  const int32_t axis = call.template attributes_as<AxisAttributes>().axis;
  TENON_ASSIGN_OR_RETURN(outputs->dims, infer::concat<typename Call::Size>(call.op->name, shapes, axis));
  outputs->dtype = call.inputs[0]->dtype();
  return {};
}

Status lower_concat(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const int32_t axis = call.attributes_as<AxisAttributes>().axis;
  Folding folding(outputs[0].dims);
  folding.add(outputs[0].strides);
  for (const Tensor* input : call.inputs) folding.add(input->strides());
  const int32_t folded = folding.fold_around(axis);
  lowering->desc.attributes.concat.axis = folded;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, folding.dims(), folding.strides(0));
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const auto index = static_cast<int32_t>(i);
    lowering->input(EP_ROLE_SRC_0 + index, index, outputs[0].dtype,
                    folding.dims_with(folded, call.inputs[i]->dims()[axis]), folding.strides(i + 1));
  }
  return {};
}

template <class Call>
Status infer_split(const Call& call, typename Call::Meta* outputs) {
  const auto& attributes = call.template attributes_as<SplitSizesAttributes>();
  const auto sizes = sizes_of(call, attributes.sizes, static_cast<size_t>(attributes.count));
  TENON_ASSIGN_OR_RETURN(const auto parts, infer::split<typename Call::Size>(call.op->name, call.inputs[0]->dims(),
                                                                             attributes.axis, sizes));
  for (size_t i = 0; i < parts.size(); ++i) {
    outputs[i].dtype = call.inputs[0]->dtype();
    outputs[i].dims = parts[i];
  }
  return {};
}

Status lower_split(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const int32_t axis = call.attributes_as<SplitSizesAttributes>().axis;
  const Tensor& input = *call.inputs[0];
  Folding folding(input.dims());
  for (const TensorMeta& output : outputs) folding.add(output.strides);
  folding.add(input.strides());
  const int32_t folded = folding.fold_around(axis);
  lowering->desc.attributes.split.axis = folded;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto index = static_cast<int32_t>(i);
    lowering->output(EP_ROLE_DST_0 + index, index, input.dtype(), folding.dims_with(folded, outputs[i].dims[axis]),
                     folding.strides(i));
  }
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), folding.dims(), folding.strides(outputs.size()));
  return {};
}

template <class Call>
Status infer_pad(const Call& call, typename Call::Meta* outputs) {
  const ep_pad_attributes& window = call.template attributes_as<PadAttributes>().window;
  const auto& input = *call.inputs[0];
  const auto rank = static_cast<size_t>(input.rank());
  const auto low = sizes_of(call, window.low, rank);
  const auto high = sizes_of(call, window.high, rank);
  TENON_ASSIGN_OR_RETURN(outputs->dims,
                         infer::pad<typename Call::Size>(call.op->name, input.dims(), window.mode, low, high));
  outputs->dtype = input.dtype();
  return {};
}

Status lower_pad(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const ep_pad_attributes& window = call.attributes_as<PadAttributes>().window;
  const Tensor& input = *call.inputs[0];
  const auto is_padded = [&](int32_t axis) { return window.low[axis] != 0 || window.high[axis] != 0; };
  uint32_t marked = 0;
  for (int32_t axis = 0; axis < input.rank(); ++axis) marked |= uint32_t{is_padded(axis)} << axis;
  Folding folding(input.dims());
  folding.add(outputs[0].strides);
  folding.add(input.strides());
  std::vector<int32_t> padded;
  const auto order = folding.sort_axes(&marked);
  for (int32_t axis = 0; axis < input.rank(); ++axis) {
    if ((marked >> axis & 1) != 0) padded.push_back(order[static_cast<size_t>(axis)]);
  }
  folding.fold_marked(&marked);
  Dims dst = folding.dims();
  ep_pad_attributes& attributes = lowering->desc.attributes.pad;
  attributes.mode = window.mode;
  auto next = padded.begin();
  for (int32_t axis = 0; axis < folding.rank(); ++axis) {
    if ((marked >> axis & 1) == 0) continue;
    attributes.low[axis] = window.low[*next];
    attributes.high[axis] = window.high[*next++];
    dst[axis] += attributes.low[axis] + attributes.high[axis];
  }
  lowering->scalar_dtypes[0] = outputs[0].dtype;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, dst, folding.strides(0));
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), folding.dims(), folding.strides(1));
  return {};
}

template Status infer_concat(const OpCall&, TensorMeta*);
template Status infer_concat(const SymCall&, SymMeta*);
template Status infer_gather_elements(const OpCall&, TensorMeta*);
template Status infer_gather_elements(const SymCall&, SymMeta*);
template Status infer_gather_nd(const OpCall&, TensorMeta*);
template Status infer_gather_nd(const SymCall&, SymMeta*);
template Status infer_gather_slices(const OpCall&, TensorMeta*);
template Status infer_gather_slices(const SymCall&, SymMeta*);
template Status infer_pad(const OpCall&, TensorMeta*);
template Status infer_pad(const SymCall&, SymMeta*);
template Status infer_split(const OpCall&, TensorMeta*);
template Status infer_split(const SymCall&, SymMeta*);

}  // namespace tenon::ops
