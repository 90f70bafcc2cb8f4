// Rules of the ops on the kinds fill and copy (cast, contiguous, clone, copy_, full, fill_), and of the builtin to and
// copy_from.
#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/sym_call.h"
#include "primitives/infer/axis.h"
#include "primitives/text/format.h"

namespace tenon::ops {

template <class Call>
Status infer_cast(const Call& call, typename Call::Meta* outputs) {
  const auto& attributes = call.template attributes_as<CastAttributes>();
  const int32_t rank = call.inputs[0]->rank();
  if (attributes.channels_last != 0 && (rank < 3 || rank > 5)) {
    return Status(Subject{"cast"}, Code::invalid_argument,
                  fmt::format("a tensor with channels last has rank 3 to 5, but input has rank {}.", rank));
  }
  outputs->dtype = attributes.dtype;
  outputs->dims = call.inputs[0]->dims();
  return {};
}

Status lower_copy(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  Folding folding(outputs[0].dims);
  folding.add(outputs[0].strides);
  folding.add(call.inputs[0]->strides());
  folding.fold_elementwise();
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, folding.dims(), folding.strides(0));
  lowering->input(EP_ROLE_SRC, 0, input_dtype(call, 0), folding.dims(), folding.strides(1));
  return {};
}

template <class Call>
Status infer_copy_from(const Call& call, typename Call::Meta* outputs) {
  outputs->dtype = call.inputs[0]->dtype();
  outputs->dims = call.inputs[0]->dims();
  return {};
}

// The result keeps the strides. If the move removes gaps, the result is row-major, so that every view of it is
// possible.
template <class Call>
Status infer_to(const Call& call, typename Call::Meta* outputs) {
  outputs->dtype = call.inputs[0]->dtype();
  outputs->dims = call.inputs[0]->dims();
  if constexpr (std::is_same_v<Call, OpCall>) outputs->strides = call.inputs[0]->strides();
  return {};
}

template <class Call>
Status infer_fill(const Call& call, typename Call::Meta* outputs) {
  const auto& attributes = call.template attributes_as<FullAttributes>();
  outputs->dtype = attributes.dtype;
  const auto sizes = sizes_of(call, attributes.dims);
  outputs->dims = BasicDims<typename Call::Size>(std::span<const typename Call::Size>(sizes));
  if constexpr (std::is_same_v<Call, OpCall>) return infer::checked(call.op->name, outputs->dims).status();
  return {};
}

Status lower_fill(const OpCall&, std::span<const TensorMeta> outputs, Lowering* lowering) {
  Folding folding(outputs[0].dims);
  folding.add(outputs[0].strides);
  folding.fold_elementwise();
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, folding.dims(), folding.strides(0));
  lowering->scalar_dtypes[0] = outputs[0].dtype;
  return {};
}

template Status infer_cast(const OpCall&, TensorMeta*);
template Status infer_cast(const SymCall&, SymMeta*);
template Status infer_copy_from(const OpCall&, TensorMeta*);
template Status infer_copy_from(const SymCall&, SymMeta*);
template Status infer_fill(const OpCall&, TensorMeta*);
template Status infer_fill(const SymCall&, SymMeta*);
template Status infer_to(const OpCall&, TensorMeta*);
template Status infer_to(const SymCall&, SymMeta*);

}  // namespace tenon::ops
