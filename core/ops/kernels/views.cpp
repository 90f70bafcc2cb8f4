// Views: dims, strides and offset (from the start of the storage) of a tensor over its input's elements.
#include "core/ops/attributes.h"
#include "core/ops/kernels.h"
#include "primitives/infer/view.h"
#include "primitives/status/sentence.h"

namespace tenon::ops {
namespace {

infer::View layout(const OpCall& call) {
  const Tensor& input = *call.inputs[0];
  return {input.dims(), input.strides(), input.impl()->offset};
}

Status give(const OpCall& call, const infer::View& view, TensorMeta* output, int64_t* offset) {
  output->dtype = call.inputs[0]->dtype();
  output->dims = view.dims;
  output->strides = view.strides;
  *offset = view.offset;
  return {};
}

}  // namespace

Status view_reshape(const OpCall& call, TensorMeta* output, int64_t* offset) {
  const Tensor& input = *call.inputs[0];
  const Dims target = call.attributes_as<ShapeAttributes>().dims.dims();
  if (input.contiguous()) {
    output->dtype = input.dtype();
    output->dims = target;
    output->strides = contiguous_strides(target);
    *offset = input.impl()->offset;
    return {};
  }
  infer::View view = layout(call);
  const std::optional<Dims> strides = infer::reshape_strides(view, target);
  if (!strides) {
    return Status(Code::invalid_argument, sentence(call.op->name, ": shape ", view.dims, " with strides ",
                                                   view.strides, " cannot be seen as ", target, " without a copy."));
  }
  view.strides = *strides;
  view.dims = target;
  return give(call, view, output, offset);
}

Status view_permute(const OpCall& call, TensorMeta* output, int64_t* offset) {
  const auto axes = call.attributes_as<PermuteAttributes>().axes.span();
  TENON_ASSIGN_OR_RETURN(const infer::View view, infer::permute(call.op->name, layout(call), axes));
  return give(call, view, output, offset);
}

Status view_squeeze(const OpCall& call, TensorMeta* output, int64_t* offset) {
  const auto axes = call.attributes_as<AxesAttributes>().axes.span();
  TENON_ASSIGN_OR_RETURN(const infer::View view, infer::squeeze(call.op->name, layout(call), axes));
  return give(call, view, output, offset);
}

Status view_unsqueeze(const OpCall& call, TensorMeta* output, int64_t* offset) {
  const auto axes = call.attributes_as<AxesAttributes>().axes.span();
  TENON_ASSIGN_OR_RETURN(const infer::View view, infer::unsqueeze(call.op->name, layout(call), axes));
  return give(call, view, output, offset);
}

Status view_expand(const OpCall& call, TensorMeta* output, int64_t* offset) {
  const auto target = call.attributes_as<ShapeAttributes>().dims.span();
  TENON_ASSIGN_OR_RETURN(const infer::View view, infer::expand(call.op->name, layout(call), target));
  return give(call, view, output, offset);
}

Status view_slice(const OpCall& call, TensorMeta* output, int64_t* offset) {
  const auto& attributes = call.attributes_as<SliceAttributes>();
  const infer::SliceRange range{attributes.start, attributes.length, attributes.step};
  return give(call, infer::slice(layout(call), attributes.axis, range), output, offset);
}

Status view_select(const OpCall& call, TensorMeta* output, int64_t* offset) {
  const auto& attributes = call.attributes_as<SelectAttributes>();
  TENON_ASSIGN_OR_RETURN(const infer::View view,
                         infer::select(call.op->name, layout(call), attributes.axis, attributes.index));
  return give(call, view, output, offset);
}

}  // namespace tenon::ops
