// Views: dims, strides and offset (from the beginning of the storage) of a tensor over its input's elements.
#include <algorithm>

#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/sym_call.h"
#include "core/tensor/factory.h"
#include "primitives/infer/axis.h"
#include "primitives/infer/view-inl.h"
#include "primitives/text/format.h"

namespace tenon::ops {
namespace {

infer::View layout(const OpCall& call) {
  const Tensor& input = *call.inputs[0];
  return {input.dims(), input.strides(), input.impl()->offset};
}

// Copies the fields that a view shares with its input, and sets the rank. The caller writes dims and strides in place,
// since copying a Dims that was just written stalls, and then calls settle_layout.
[[gnu::always_inline]] inline void begin(const TensorImpl& input, int32_t rank, TensorImpl* output) {
  output->dtype = input.dtype;
  output->offset = input.offset;
  output->dims.resize_for_overwrite(rank);
  output->strides.resize_for_overwrite(rank);
}

Status give(const OpCall& call, const infer::View& view, TensorImpl* output) {
  output->dtype = call.inputs[0]->dtype();
  output->dims = view.dims;
  output->strides = view.strides;
  output->offset = view.offset;
  settle_layout(output);
  return {};
}

// Views `input`, which is contiguous, as `dims`. Most views use this function.
void give_row_major(const TensorImpl& input, std::span<const int64_t> dims, TensorImpl* output) {
  const auto rank = static_cast<int32_t>(dims.size());
  begin(input, rank, output);
  output->elements = input.elements;
  int64_t stride = 1;
  for (int32_t axis = rank - 1; axis >= 0; --axis) {
    const int64_t dim = dims[static_cast<size_t>(axis)];
    output->dims[axis] = dim;
    output->strides[axis] = stride;
    stride *= std::max<int64_t>(dim, 1);
  }
}

// Views an input that is not contiguous as `dims`.
Status give_strided(const OpCall& call, const Dims& dims, TensorImpl* output) {
  infer::View view = layout(call);
  const std::optional<Dims> strides = infer::reshape_strides(view, dims);
  if (!strides) {
    return Status(
        Subject{call.op->name}, Code::invalid_argument,
        fmt::format("shape {} with strides {} cannot be seen as {} without a copy.", view.dims, view.strides, dims));
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
  const Tensor& input = *call.inputs[0];
  const auto axes = call.attributes_as<PermuteAttributes>().axes.span();
  TENON_ASSIGN_OR_RETURN(const Dims order, infer::permutation(call.op->name, input.dims(), axes));
  begin(*input.impl(), order.rank(), output);
  for (int32_t axis = 0; axis < order.rank(); ++axis) {
    output->dims[axis] = input.dims()[order[axis]];
    output->strides[axis] = input.strides()[order[axis]];
  }
  settle_layout(output);
  return {};
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
  const Tensor& input = *call.inputs[0];
  const auto target = call.attributes_as<ShapeAttributes>().dims.span();
  uint32_t kept = 0;
  TENON_ASSIGN_OR_RETURN(const Dims dims, infer::expand_dims<int64_t>(call.op->name, input.dims(), target, &kept));
  begin(*input.impl(), dims.rank(), output);
  const int32_t shift = dims.rank() - input.rank();
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    output->dims[axis] = dims[axis];
    output->strides[axis] = (kept >> axis & 1) != 0 ? input.strides()[axis - shift] : 0;
  }
  settle_layout(output);
  return {};
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

// The dims of views whose sizes are expressions. Their strides come from the hints, and the rules do not compute them.
namespace {

Status give_dims(const SymCall& call, const SymDims& dims, SymMeta* output) {
  *output = {call.inputs[0]->dtype(), dims};
  return {};
}

}  // namespace

Status dims_reshape(const SymCall& call, SymMeta* output) {
  const std::vector<SymDim> target = sizes_of(call, call.attributes_as<ShapeAttributes>().dims);
  TENON_ASSIGN_OR_RETURN(const SymDims dims, infer::reshape<SymDim>(call.op->name, call.inputs[0]->dims(), target));
  if (std::all_of(dims.begin(), dims.end(), [](SymDim dim) { return dim.is_number(); })) {
    Dims numbers;
    for (SymDim dim : dims) numbers.push_back(dim.number());
    TENON_RETURN_IF_ERROR(infer::checked(call.op->name, numbers).status());
  }
  return give_dims(call, dims, output);
}

Status dims_permute(const SymCall& call, SymMeta* output) {
  const SymDims& dims = call.inputs[0]->dims();
  TENON_ASSIGN_OR_RETURN(const Dims order,
                         infer::permutation(call.op->name, dims, call.attributes_as<PermuteAttributes>().axes.span()));
  return give_dims(call, infer::permuted(dims, order), output);
}

Status dims_squeeze(const SymCall& call, SymMeta* output) {
  const SymDims& dims = call.inputs[0]->dims();
  TENON_ASSIGN_OR_RETURN(const uint32_t gone,
                         infer::squeezed(call.op->name, dims, call.attributes_as<AxesAttributes>().axes.span()));
  return give_dims(call, infer::without(dims, gone), output);
}

Status dims_unsqueeze(const SymCall& call, SymMeta* output) {
  const SymDims& dims = call.inputs[0]->dims();
  TENON_ASSIGN_OR_RETURN(const uint32_t inserted, infer::unsqueezed(call.op->name, dims.rank(),
                                                                    call.attributes_as<AxesAttributes>().axes.span()));
  return give_dims(call, infer::with_ones(dims, inserted), output);
}

Status dims_expand(const SymCall& call, SymMeta* output) {
  const std::vector<SymDim> target = sizes_of(call, call.attributes_as<ShapeAttributes>().dims);
  uint32_t kept = 0;
  TENON_ASSIGN_OR_RETURN(const SymDims dims,
                         infer::expand_dims<SymDim>(call.op->name, call.inputs[0]->dims(), target, &kept));
  return give_dims(call, dims, output);
}

Status dims_slice(const SymCall& call, SymMeta* output) {
  const auto& attributes = call.attributes_as<SliceAttributes>();
  SymDims dims = call.inputs[0]->dims();
  TENON_ASSIGN_OR_RETURN(const auto range, infer::slice_range<SymDim>(call.op->name, dims[attributes.axis],
                                                                      size_of(call, attributes.start),
                                                                      size_of(call, attributes.end), attributes.step));
  dims[attributes.axis] = range.length;
  return give_dims(call, dims, output);
}

Status dims_select(const SymCall& call, SymMeta* output) {
  const auto& attributes = call.attributes_as<SelectAttributes>();
  SymDims dims = call.inputs[0]->dims();
  if (dims.empty()) return infer::wrong(call.op->name, "a tensor of rank 0 has no axis to select from.");
  TENON_ASSIGN_OR_RETURN(const int32_t axis, infer::axis(call.op->name, attributes.axis, dims.rank()));
  TENON_RETURN_IF_ERROR(
      infer::selected<SymDim>(call.op->name, dims[axis], axis, size_of(call, attributes.index)).status());
  dims.erase(axis);
  return give_dims(call, dims, output);
}

}  // namespace tenon::ops
