// Rules of ops that replace a part of a tensor's elements.
#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/rules/guards.h"
#include "core/ops/sym_call.h"
#include "primitives/infer/assemble-inl.h"
#include "primitives/infer/view-inl.h"

namespace tenon::ops {
namespace {

// The result, which has the metadata of the input; checks that the source, an input, has the dims of the part.
template <class Call, class Dims>
Status give_whole(const Call& call, const Dims& part, typename Call::Meta* outputs, size_t source = 1) {
  const auto& input = *call.inputs[0];
  const auto& src = *call.inputs[source];
  if (src.dtype() != input.dtype()) {
    return infer::wrong(call.op->name, "src is {} but input is {}.", dtype_name(src.dtype()),
                        dtype_name(input.dtype()));
  }
  bool same = src.rank() == part.rank();
  for (int32_t axis = 0; same && axis < part.rank(); ++axis) same = expect(src.dims()[axis] == part[axis]);
  if (!same)
    return infer::wrong(call.op->name, "src has shape {}, but the part to replace has shape {}.", src.dims(), part);
  outputs->dtype = input.dtype();
  outputs->dims = input.dims();
  return {};
}

// True if the updates have the dims of `dst` except along `axis`: then the other axes can be folded.
bool fills_lanes(const Dims& dst, const Dims& updates, int32_t axis) {
  bool same = dst.rank() == updates.rank();
  for (int32_t k = 0; same && k < dst.rank(); ++k) same = k == axis || dst[k] == updates[k];
  return same;
}

}  // namespace

// Inputs: input, the indices and the updates.
template <class Call>
Status infer_scatter(const Call& call, typename Call::Meta* outputs) {
  using Size = typename Call::Size;
  const ep_scatter_attributes& at = call.template attributes_as<ScatterAttributes>().scatter;
  const auto& input = *call.inputs[0];
  const auto& index = call.inputs[1]->dims();
  const bool slices = at.mode == EP_GATHER_SLICES;
  TENON_RETURN_IF_ERROR(require_axis(call, at.axis, input.rank()));
  TENON_RETURN_IF_ERROR(require_choice(call, "mode", at.mode, EP_GATHER_SLICES, EP_GATHER_COORDINATES));
  TENON_RETURN_IF_ERROR(require_choice(call, "op", at.op, EP_SCATTER_ASSIGN, EP_SCATTER_MAX));
  if (at.mode == EP_GATHER_COORDINATES) {
    const int32_t count = input.rank() - at.axis + index.rank() - 1 - call.inputs[2]->rank();
    TENON_RETURN_IF_ERROR(require_coordinates(call, at.axis, count));
    return give_whole(call, infer::gather_coordinates<Size>(input.dims(), index, at.axis, count), outputs, 2);
  }
  TENON_ASSIGN_OR_RETURN(const auto taken,
                         slices ? infer::gather_slices<Size>(call.op->name, input.dims(), at.axis, index)
                                : infer::gather_elements<Size>(call.op->name, input.dims(), at.axis, index));
  const auto& src = *call.inputs[2];
  if (src.dtype() != input.dtype()) {
    return infer::wrong(call.op->name, "src is {} but input is {}.", dtype_name(src.dtype()),
                        dtype_name(input.dtype()));
  }
  bool same = src.rank() == taken.rank();
  for (int32_t axis = 0; same && axis < taken.rank(); ++axis) same = expect(src.dims()[axis] == taken[axis]);
  if (!same) return infer::wrong(call.op->name, "src has shape {}, but index wants {}.", src.dims(), taken);
  outputs->dtype = input.dtype();
  outputs->dims = input.dims();
  return {};
}

Status lower_scatter(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const Tensor& input = *call.inputs[0];
  const Tensor& index = *call.inputs[1];
  const Tensor& src = *call.inputs[2];
  const ep_scatter_attributes& at = call.attributes_as<ScatterAttributes>().scatter;
  const bool slices = at.mode == EP_GATHER_SLICES;
  const DType dtype = outputs[0].dtype;
  lowering->desc.attributes.scatter = at;
  const bool coordinates = at.mode == EP_GATHER_COORDINATES;
  if (coordinates || !fills_lanes(input.dims(), src.dims(), at.axis) || (slices && index.rank() != 1)) {
    lowering->output(EP_ROLE_DST, 0, dtype, outputs[0].dims, outputs[0].strides);
    lowering->input(EP_ROLE_SRC, 0, dtype, input.dims(), input.strides());
    lowering->input(EP_ROLE_SRC_B, 2, dtype, src.dims(), src.strides());
    lowering->input(EP_ROLE_INDICES, 1, index.dtype(), index.dims(), index.strides());
    return {};
  }
  Folding folding(src.dims());
  folding.add(outputs[0].strides);
  folding.add(input.strides());
  folding.add(src.strides());
  if (!slices) folding.add(index.strides());
  const int32_t axis = folding.fold_around(at.axis);
  const Dims whole = folding.dims_with(axis, input.dims()[at.axis]);
  lowering->desc.attributes.scatter.axis = axis;
  lowering->output(EP_ROLE_DST, 0, dtype, whole, folding.strides(0));
  lowering->input(EP_ROLE_SRC, 0, dtype, whole, folding.strides(1));
  lowering->input(EP_ROLE_SRC_B, 2, dtype, folding.dims(), folding.strides(2));
  lowering->input(EP_ROLE_INDICES, 1, index.dtype(), slices ? index.dims() : folding.dims(),
                  slices ? list_strides(index) : folding.strides(3));
  return {};
}

template <class Call>
Status infer_slice_scatter(const Call& call, typename Call::Meta* outputs) {
  using Size = typename Call::Size;
  const auto& attributes = call.template attributes_as<SliceAttributes>();
  auto part = call.inputs[0]->dims();
  TENON_ASSIGN_OR_RETURN(const auto range,
                         infer::slice_range<Size>(call.op->name, part[attributes.axis], size_of(call, attributes.start),
                                                  size_of(call, attributes.end), attributes.step));
  part[attributes.axis] = range.length;
  return give_whole(call, part, outputs);
}

template <class Call>
Status infer_select_scatter(const Call& call, typename Call::Meta* outputs) {
  using Size = typename Call::Size;
  const auto& attributes = call.template attributes_as<SelectAttributes>();
  auto part = call.inputs[0]->dims();
  if (part.empty()) return infer::wrong(call.op->name, "a tensor of rank 0 has no axis to select from.");
  TENON_ASSIGN_OR_RETURN(const int32_t axis, infer::axis(call.op->name, attributes.axis, part.rank()));
  TENON_RETURN_IF_ERROR(
      infer::selected<Size>(call.op->name, part[axis], axis, size_of(call, attributes.index)).status());
  part.erase(axis);
  return give_whole(call, part, outputs);
}

template Status infer_scatter(const OpCall&, TensorMeta*);
template Status infer_scatter(const SymCall&, SymMeta*);
template Status infer_select_scatter(const OpCall&, TensorMeta*);
template Status infer_select_scatter(const SymCall&, SymMeta*);
template Status infer_slice_scatter(const OpCall&, TensorMeta*);
template Status infer_slice_scatter(const SymCall&, SymMeta*);

}  // namespace tenon::ops
