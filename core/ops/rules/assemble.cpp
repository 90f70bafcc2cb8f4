// Rules of gather, concat, split and pad.
#include <vector>

#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "primitives/infer/assemble.h"

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

Status infer_gather_slices(const OpCall& call, TensorMeta* outputs) {
  const int32_t axis = call.attributes_as<AxisAttributes>().axis;
  TENON_ASSIGN_OR_RETURN(outputs->dims,
                         infer::gather_slices(call.op->name, call.inputs[0]->dims(), axis, call.inputs[1]->dims()));
  outputs->dtype = call.inputs[0]->dtype();
  return {};
}

Status infer_gather_elements(const OpCall& call, TensorMeta* outputs) {
  const int32_t axis = call.attributes_as<AxisAttributes>().axis;
  TENON_ASSIGN_OR_RETURN(outputs->dims,
                         infer::gather_elements(call.op->name, call.inputs[0]->dims(), axis, call.inputs[1]->dims()));
  outputs->dtype = call.inputs[0]->dtype();
  return {};
}

Status lower_gather(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const int32_t axis = call.attributes_as<AxisAttributes>().axis;
  if (call.op->infer == infer_gather_slices) {
    lower_slices(call, outputs[0], axis, lowering);
  } else {
    lower_elements(call, outputs[0], axis, lowering);
  }
  return {};
}

Status infer_concat(const OpCall& call, TensorMeta* outputs) {
  std::vector<Dims> shapes;
  for (const Tensor* input : call.inputs) shapes.push_back(input->dims());
  const int32_t axis = call.attributes_as<AxisAttributes>().axis;
  TENON_ASSIGN_OR_RETURN(outputs->dims, infer::concat(call.op->name, shapes, axis));
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

Status infer_split(const OpCall& call, TensorMeta* outputs) {
  const auto& attributes = call.attributes_as<SplitSizesAttributes>();
  const std::span<const int64_t> sizes(attributes.sizes, static_cast<size_t>(attributes.count));
  TENON_ASSIGN_OR_RETURN(const std::vector<Dims> parts,
                         infer::split(call.op->name, call.inputs[0]->dims(), attributes.axis, sizes));
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

Status infer_pad(const OpCall& call, TensorMeta* outputs) {
  const ep_pad_attributes& window = call.attributes_as<PadAttributes>().window;
  const Tensor& input = *call.inputs[0];
  const auto rank = static_cast<size_t>(input.rank());
  TENON_ASSIGN_OR_RETURN(outputs->dims,
                         infer::pad(call.op->name, input.dims(), window.mode, {window.low, rank}, {window.high, rank}));
  outputs->dtype = input.dtype();
  return {};
}

Status lower_pad(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const ep_pad_attributes& window = call.attributes_as<PadAttributes>().window;
  const Tensor& input = *call.inputs[0];
  uint32_t marked = 0;
  std::vector<int32_t> padded;
  for (int32_t axis = 0; axis < input.rank(); ++axis) {
    if (window.low[axis] == 0 && window.high[axis] == 0) continue;
    marked |= 1u << axis;
    padded.push_back(axis);
  }
  Folding folding(input.dims());
  folding.add(outputs[0].strides);
  folding.add(input.strides());
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

}  // namespace tenon::ops
