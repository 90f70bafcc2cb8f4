// The rule of recurrent.
#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/sym_call.h"

namespace tenon::ops {

template <class Call>
Status infer_recurrent(const Call& call, typename Call::Meta* outputs) {
  const auto& input = *call.inputs[0];
  const typename Call::Size width = call.inputs[2]->dims()[1];
  outputs[0].dims = input.dims();
  outputs[0].dims[2] = width;
  for (size_t i = 0; i < call.op->output_count; ++i) outputs[i].dtype = input.dtype();
  for (size_t i = 1; i < call.op->output_count; ++i) outputs[i].dims = {input.dims()[1], width};
  return {};
}

Status lower_recurrent(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  // Of each input the role, in the order of the roles; lstm has two inputs more.
  struct Input {
    int32_t role;
    int of_layer;
    int of_lstm;
  };
  constexpr Input inputs[] = {
      {EP_ROLE_SRC, 0, 0},       {EP_ROLE_WEIGHT, 1, 1},           {EP_ROLE_BIAS, 3, 3},
      {EP_ROLE_LENGTHS, 6, 8},   {EP_ROLE_RECURRENT_WEIGHT, 2, 2}, {EP_ROLE_RECURRENT_BIAS, 4, 4},
      {EP_ROLE_PEEPHOLE, -1, 7}, {EP_ROLE_HIDDEN, 5, 5},           {EP_ROLE_CELL, -1, 6}};
  constexpr int32_t roles[] = {EP_ROLE_DST, EP_ROLE_DST_HIDDEN, EP_ROLE_DST_CELL};
  const ep_recurrent_attributes& layer = call.attributes_as<RecurrentAttributes>().layer;
  lowering->desc.attributes.recurrent = layer;
  for (size_t i = 0; i < outputs.size(); ++i) {
    lowering->output(roles[i], static_cast<int>(i), outputs[i].dtype, outputs[i].dims, outputs[i].strides);
  }
  for (const Input& each : inputs) {
    const int place = layer.cell == EP_CELL_LSTM ? each.of_lstm : each.of_layer;
    if (place < 0 || call.inputs[static_cast<size_t>(place)] == nullptr) continue;
    const Tensor& input = *call.inputs[static_cast<size_t>(place)];
    lowering->input(each.role, place, input.dtype(), input.dims(), input.strides());
  }
  return {};
}

template Status infer_recurrent(const OpCall&, TensorMeta*);
template Status infer_recurrent(const SymCall&, SymMeta*);

}  // namespace tenon::ops
