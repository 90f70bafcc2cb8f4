#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "primitives/infer/convolution.h"

namespace tenon::ops {

Status infer_pooling(const OpCall& call, TensorMeta* outputs) {
  const auto& attributes = call.attributes_as<PoolingAttributes>();
  const Tensor& input = *call.inputs[0];
  TENON_ASSIGN_OR_RETURN(outputs[0].dims,
                         infer::pooling(call.op->name, input.dims(), attributes.window, attributes.ceil_mode != 0));
  outputs[0].dtype = input.dtype();
  return {};
}

Status infer_pooling_with_indices(const OpCall& call, TensorMeta* outputs) {
  TENON_RETURN_IF_ERROR(infer_pooling(call, outputs));
  outputs[1].dims = outputs[0].dims;
  outputs[1].dtype = DType::i64;
  return {};
}

Status lower_pooling(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const Tensor& input = *call.inputs[0];
  lowering->desc.attributes.pooling = call.attributes_as<PoolingAttributes>().window;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, outputs[0].dims, outputs[0].strides);
  if (outputs.size() > 1) lowering->output(EP_ROLE_DST_INDICES, 1, DType::i64, outputs[1].dims, outputs[1].strides);
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), input.dims(), input.strides());
  return {};
}

}  // namespace tenon::ops
