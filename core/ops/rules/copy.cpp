// Rules of the ops on the kinds fill and copy (cast, contiguous, clone, copy_, full, fill_), and of the builtin to and
// copy_from.
#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"

namespace tenon::ops {

Status infer_cast(const OpCall& call, TensorMeta* outputs) {
  outputs->dtype = call.attributes_as<CastAttributes>().dtype;
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

Status infer_copy_from(const OpCall& call, TensorMeta* outputs) {
  outputs->dtype = call.inputs[0]->dtype();
  outputs->dims = call.inputs[0]->dims();
  return {};
}

// The result keeps the strides. If the move closes gaps, the result is row-major, and every view can be made of it.
Status infer_to(const OpCall& call, TensorMeta* outputs) {
  *outputs = {call.inputs[0]->dtype(), call.inputs[0]->dims(), call.inputs[0]->strides()};
  return {};
}

Status infer_fill(const OpCall& call, TensorMeta* outputs) {
  const auto& attributes = call.attributes_as<FillAttributes>();
  outputs->dtype = attributes.dtype;
  outputs->dims = attributes.dims.dims();
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

}  // namespace tenon::ops
