// Views: dims, strides and offset (from the start of the storage) of a tensor over its input's elements.
#include <algorithm>

#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/tensor/factory.h"
#include "primitives/infer/view.h"
#include "primitives/text/format.h"

namespace tenon::ops {
namespace {

infer::View layout(const OpCall& call) {
  const Tensor& input = *call.inputs[0];
  return {input.dims(), input.strides(), input.impl()->offset};
}

Status give(const OpCall& call, const infer::View& view, TensorImpl* output) {
  output->dtype = call.inputs[0]->dtype();
  output->dims = view.dims;
  output->strides = view.strides;
  output->offset = view.offset;
  settle_layout(output);
  return {};
}

// The elements of `input`, which is contiguous, as `dims`. Written where they stay, number by number: this is the way
// of most views, and copying a Dims that was just made waits for its last number to be stored.
void give_row_major(const TensorImpl& input, std::span<const int64_t> dims, TensorImpl* output) {
  output->dtype = input.dtype;
  output->offset = input.offset;
  output->elements = input.elements;
  const auto rank = static_cast<int32_t>(dims.size());
  output->dims.resize_for_overwrite(rank);
  output->strides.resize_for_overwrite(rank);
  int64_t stride = 1;
  for (int32_t axis = rank - 1; axis >= 0; --axis) {
    const int64_t dim = dims[static_cast<size_t>(axis)];
    output->dims[axis] = dim;
    output->strides[axis] = stride;
    stride *= std::max<int64_t>(dim, 1);
  }
}

// The elements of an input that is not, as `dims`.
Status give_strided(const OpCall& call, const Dims& dims, TensorImpl* output) {
  infer::View view = layout(call);
  const std::optional<Dims> strides = infer::reshape_strides(view, dims);
  if (!strides) {
    return Status(Code::invalid_argument,
                  fmt::format("{}: shape {} with strides {} cannot be seen as {} without a copy.", call.op->name,
                              view.dims, view.strides, dims));
  }
  view.strides = *strides;
  view.dims = dims;
  return give(call, view, output);
}

}  // namespace

Status view_reshape(const OpCall& call, TensorImpl* output) {
  const TensorImpl& input = *call.inputs[0]->impl();
  const auto dims = call.attributes_as<ShapeAttributes>().dims.span();
  if (!input.contiguous) return give_strided(call, Dims(dims), output);
  give_row_major(input, dims, output);
  return {};
}

Status view_permute(const OpCall& call, TensorImpl* output) {
  const auto axes = call.attributes_as<PermuteAttributes>().axes.span();
  TENON_ASSIGN_OR_RETURN(const infer::View view, infer::permute(call.op->name, layout(call), axes));
  return give(call, view, output);
}

Status view_squeeze(const OpCall& call, TensorImpl* output) {
  const auto axes = call.attributes_as<AxesAttributes>().axes.span();
  TENON_ASSIGN_OR_RETURN(const infer::View view, infer::squeeze(call.op->name, layout(call), axes));
  return give(call, view, output);
}

Status view_unsqueeze(const OpCall& call, TensorImpl* output) {
  const auto axes = call.attributes_as<AxesAttributes>().axes.span();
  TENON_ASSIGN_OR_RETURN(const infer::View view, infer::unsqueeze(call.op->name, layout(call), axes));
  return give(call, view, output);
}

Status view_expand(const OpCall& call, TensorImpl* output) {
  const auto target = call.attributes_as<ShapeAttributes>().dims.span();
  TENON_ASSIGN_OR_RETURN(const infer::View view, infer::expand(call.op->name, layout(call), target));
  return give(call, view, output);
}

Status view_slice(const OpCall& call, TensorImpl* output) {
  const auto& attributes = call.attributes_as<SliceAttributes>();
  TENON_ASSIGN_OR_RETURN(const infer::SliceRange range,
                         infer::slice_range(call.op->name, call.inputs[0]->dims()[attributes.axis], attributes.start,
                                            attributes.end, attributes.step));
  return give(call, infer::slice(layout(call), attributes.axis, range), output);
}

Status view_select(const OpCall& call, TensorImpl* output) {
  const auto& attributes = call.attributes_as<SelectAttributes>();
  TENON_ASSIGN_OR_RETURN(const infer::View view,
                         infer::select(call.op->name, layout(call), attributes.axis, attributes.index));
  return give(call, view, output);
}

}  // namespace tenon::ops
