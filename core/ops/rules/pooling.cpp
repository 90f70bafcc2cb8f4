#include <cmath>

#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/rules/guards.h"
#include "core/ops/sym_call.h"
#include "primitives/infer/convolution-inl.h"

namespace tenon::ops {
namespace {

template <class Call>
Status check_kind(const Call& call, const ep_pooling_attributes& window) {
  const bool lp = window.op == EP_POOLING_LP;
  TENON_RETURN_IF_ERROR(require_choice(call, "op", window.op, EP_POOLING_MAX, EP_POOLING_LP));
  if (lp) TENON_RETURN_IF_ERROR(require_floating(call, 0, "input"));
  if (lp ? window.p > 0 && std::isfinite(window.p) : window.p == 0) return {};
  return infer::wrong(call.op->name, "p is {}; it must be {}.", window.p,
                      lp ? "above 0 and finite" : "0 but for op lp");
}

}  // namespace

template <class Call>
Status infer_pooling(const Call& call, typename Call::Meta* outputs) {
  const auto& attributes = call.template attributes_as<PoolingAttributes>();
  const auto& input = *call.inputs[0];
  TENON_RETURN_IF_ERROR(check_kind(call, attributes.window));
  const auto low = sizes_of(call, attributes.window.pad_low, 3);
  const auto high = sizes_of(call, attributes.window.pad_high, 3);
  TENON_ASSIGN_OR_RETURN(outputs[0].dims,
                         infer::pooling<typename Call::Size>(call.op->name, input.dims(), attributes.window, low, high,
                                                             attributes.ceil_mode != 0));
  outputs[0].dtype = input.dtype();
  return {};
}

template <class Call>
Status infer_pooling_with_indices(const Call& call, typename Call::Meta* outputs) {
  const int32_t op = call.template attributes_as<PoolingAttributes>().window.op;
  TENON_RETURN_IF_ERROR(require_choice(call, "op", op, EP_POOLING_MAX, EP_POOLING_MAX));
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

template Status infer_pooling(const OpCall&, TensorMeta*);
template Status infer_pooling(const SymCall&, SymMeta*);
template Status infer_pooling_with_indices(const OpCall&, TensorMeta*);
template Status infer_pooling_with_indices(const SymCall&, SymMeta*);

}  // namespace tenon::ops
