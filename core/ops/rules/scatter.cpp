// Rules of ops that replace a part of a tensor's elements.
#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/sym_call.h"
#include "primitives/infer/view-inl.h"

namespace tenon::ops {
namespace {

// The result, which is like the input, if inputs 1 has the dims of the part.
template <class Call, class Dims>
Status give_whole(const Call& call, const Dims& part, typename Call::Meta* outputs) {
  const auto& input = *call.inputs[0];
  const auto& src = *call.inputs[1];
  if (src.dtype() != input.dtype()) {
    return infer::wrong(call.op->name, "src is {} but input is {}.", dtype_name(src.dtype()),
                        dtype_name(input.dtype()));
  }
  bool same = src.rank() == part.rank();
  for (int32_t axis = 0; same && axis < part.rank(); ++axis) same = expect(src.dims()[axis] == part[axis]);
  if (!same) return infer::wrong(call.op->name, "src has shape {}, but its place has shape {}.", src.dims(), part);
  outputs->dtype = input.dtype();
  outputs->dims = input.dims();
  return {};
}

}  // namespace

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

template Status infer_select_scatter(const OpCall&, TensorMeta*);
template Status infer_select_scatter(const SymCall&, SymMeta*);
template Status infer_slice_scatter(const OpCall&, TensorMeta*);
template Status infer_slice_scatter(const SymCall&, SymMeta*);

}  // namespace tenon::ops
