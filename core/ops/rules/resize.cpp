// The rule of resize.
#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/sym_call.h"

namespace tenon::ops {

template <class Call>
Status infer_resize(const Call& call, typename Call::Meta* outputs) {
  const auto sizes = sizes_of(call, call.template attributes_as<ResizeAttributes>().dims);
  outputs->dtype = call.inputs[0]->dtype();
  outputs->dims = BasicDims<typename Call::Size>(std::span<const typename Call::Size>(sizes));
  return {};
}

Status lower_resize(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const Tensor& input = *call.inputs[0];
  lowering->desc.attributes.resize = call.attributes_as<ResizeAttributes>().grid;
  lowering->scalar_dtypes[0] = outputs[0].dtype;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, outputs[0].dims, outputs[0].strides);
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), input.dims(), input.strides());
  return {};
}

template Status infer_resize(const OpCall&, TensorMeta*);
template Status infer_resize(const SymCall&, SymMeta*);

}  // namespace tenon::ops
