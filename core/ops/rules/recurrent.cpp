// The rule of recurrent.
#include <cmath>
#include <vector>

#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/rules/guards.h"
#include "core/ops/sym_call.h"

namespace tenon::ops {
namespace {

template <class Call>
Status check_layer(const Call& call) {
  const std::string_view op = call.op->name;
  const ep_recurrent_attributes& layer = call.template attributes_as<RecurrentAttributes>().layer;
  const bool lstm = call.op->output_count == 3;
  const bool gru = layer.cell == EP_CELL_GRU;
  TENON_RETURN_IF_ERROR(require_choice(call, "cell", layer.cell, EP_CELL_TANH, EP_CELL_GRU));
  if ((layer.cell == EP_CELL_LSTM) != lstm) {
    return infer::wrong(op, "cell is {}; it must {}be {}, that of lstm.", layer.cell, lstm ? "" : "not ", EP_CELL_LSTM);
  }
  TENON_RETURN_IF_ERROR(require_flags(call, layer.flags,
                                      EP_RECURRENT_FLAG_REVERSE | EP_RECURRENT_FLAG_TORCH |
                                          (gru ? EP_RECURRENT_FLAG_LINEAR_BEFORE_RESET : 0) |
                                          (lstm ? EP_RECURRENT_FLAG_COUPLED : 0)));
  if (!(layer.clip >= 0) || !std::isfinite(layer.clip)) {
    return infer::wrong(op, "clip is {}; it must be at least 0 and finite.", layer.clip);
  }
  const auto& dims = call.inputs[0]->dims();
  const auto& recurrent = call.inputs[2]->dims();
  if (dims.rank() != 3 || recurrent.rank() != 2) {
    return infer::wrong(op, "input has shape {} and recurrent_weight {}; they must have ranks 3 and 2.", dims,
                        recurrent);
  }
  for (const auto& size : {dims[0], dims[1], dims[2], recurrent[1]}) {
    if (!expect(size >= 1)) {
      return infer::wrong(op, "input of shape {} or recurrent_weight of shape {} has no elements.", dims, recurrent);
    }
  }
  return {};
}

// The tensors other than the input: each has the input's dtype, except the lengths, and the dims that follow from input
// and width.
template <class Call>
Status check_tensors(const Call& call) {
  using Size = typename Call::Size;
  const bool lstm = call.op->output_count == 3;
  const auto& dims = call.inputs[0]->dims();
  const Size batch = dims[1], width = call.inputs[2]->dims()[1];
  const int64_t gates = lstm ? 4 : call.template attributes_as<RecurrentAttributes>().layer.cell == EP_CELL_GRU ? 3 : 1;
  Size rows = 0, triple = 0;
  if (mul_overflows(width, Size(gates), &rows) || mul_overflows(width, Size(3), &triple)) {
    return infer::wrong(call.op->name, "recurrent_weight of shape {} is too wide.", call.inputs[2]->dims());
  }
  struct Wanted {
    std::string_view name;
    BasicDims<Size> dims;
  };
  const Wanted state = {"hidden", {batch, width}}, lengths = {"lengths", {batch}};
  std::vector<Wanted> list = {{"weight", {rows, dims[2]}},
                              {"recurrent_weight", {rows, width}},
                              {"bias", {rows}},
                              {"recurrent_bias", {rows}},
                              state};
  if (lstm) list.insert(list.end(), {{"cell", state.dims}, {"peephole", {triple}}});
  list.push_back(lengths);
  TENON_RETURN_IF_ERROR(require_floating(call, 0, "input"));
  for (size_t i = 1; i < call.inputs.size(); ++i) {
    if (call.inputs[i] == nullptr) continue;
    const Wanted& wanted = list[i - 1];
    TENON_RETURN_IF_ERROR(i == list.size() ? require_index(call, i, wanted.name)
                                           : require_dtype(call, i, wanted.name, call.inputs[0]->dtype()));
    TENON_RETURN_IF_ERROR(require_shape(call, i, wanted.name, wanted.dims));
  }
  return {};
}

}  // namespace

template <class Call>
Status infer_recurrent(const Call& call, typename Call::Meta* outputs) {
  TENON_RETURN_IF_ERROR(check_layer(call));
  TENON_RETURN_IF_ERROR(check_tensors(call));
  const auto& input = *call.inputs[0];
  const typename Call::Size width = call.inputs[2]->dims()[1];
  outputs[0].dims = input.dims();
  outputs[0].dims[2] = width;
  for (size_t i = 0; i < call.op->output_count; ++i) outputs[i].dtype = input.dtype();
  for (size_t i = 1; i < call.op->output_count; ++i) outputs[i].dims = {input.dims()[1], width};
  return checked_numbers(call, outputs[0].dims);
}

Status lower_recurrent(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  // The role of each input, in the order of the roles; lstm has two more inputs.
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
