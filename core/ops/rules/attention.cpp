// attention and rotary. Inputs of attention: query, key, value, and bias and lengths or null.
#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/rules/guards.h"
#include "core/ops/sym_call.h"
#include "primitives/infer/broadcast-inl.h"
#include "primitives/infer/broadcast.h"

namespace tenon::ops {
namespace {

// Ok if `dims` broadcast to `all`, unchanged.
template <class T>
Status check_broadcast(std::string_view op, std::string_view name, const BasicDims<T>& dims, const BasicDims<T>& all) {
  BasicDims<T> wide = all;
  bool fits = dims.rank() <= all.rank() && infer::widen(wide, dims);
  for (int32_t axis = 0; fits && axis < all.rank(); ++axis) {
    fits = identical(wide[axis], all[axis]) || expect(wide[axis] == all[axis]);
  }
  if (fits) return {};
  return infer::wrong(op, "{} has shape {}, which does not broadcast to {}.", name, dims, all);
}

template <class Call>
Status infer_result(const Call& call, typename Call::Meta* output) {
  const std::string_view op = call.op->name;
  const auto& query = call.inputs[0]->dims();
  const auto& key = call.inputs[1]->dims();
  const auto& value = call.inputs[2]->dims();
  if (query.rank() != 4 || key.rank() != 4 || value.rank() != 4) {
    return infer::wrong(op, "query, key and value have ranks {}, {} and {}; they must be 4.", query.rank(), key.rank(),
                        value.rank());
  }
  const ep_attention_attributes& at = call.template attributes_as<AttentionAttributes>().attention;
  TENON_RETURN_IF_ERROR(require_choice(call, "align", at.align, EP_ATTENTION_START, EP_ATTENTION_END));
  if (at.before < -1 || at.after < -1) {
    return infer::wrong(op, "before ({}) and after ({}) must be at least -1.", at.before, at.after);
  }
  TENON_RETURN_IF_ERROR(require_floating(call, 0, "query"));
  for (size_t i : {1, 2}) {
    if (call.inputs[i]->dtype() == call.inputs[0]->dtype()) continue;
    return infer::wrong(op, "query is {}, but {} is {}.", dtype_name(call.inputs[0]->dtype()), i == 1 ? "key" : "value",
                        dtype_name(call.inputs[i]->dtype()));
  }
  const bool fits = expect(key[0] == query[0]) && expect(value[0] == query[0]) && expect(key[3] == query[3]) &&
                    expect(value[1] == key[1]) && expect(value[2] == key[2]);
  if (!fits) return infer::wrong(op, "shapes {} of query, {} of key and {} of value do not agree.", query, key, value);
  for (int32_t axis = 1; axis < 4; ++axis) {
    if (!expect(key[axis] >= 1)) return infer::wrong(op, "key of shape {} has no elements.", key);
  }
  if (!expect(modulo(query[1], key[1]) == 0)) {
    return infer::wrong(op, "{} heads of query are not a multiple of {} heads of key.", query[1], key[1]);
  }
  output->dtype = call.inputs[0]->dtype();
  output->dims = query;
  output->dims[3] = value[3];
  if (call.inputs[3] != nullptr) {
    auto scores = query;
    scores[3] = key[2];
    TENON_RETURN_IF_ERROR(check_broadcast(op, "bias", call.inputs[3]->dims(), scores));
    const DType dtype = call.inputs[3]->dtype();
    if (dtype != DType::boolean && dtype != output->dtype) {
      return infer::wrong(op, "bias is {}; it must be bool or {}.", dtype_name(dtype), dtype_name(output->dtype));
    }
  }
  if (call.inputs[4] == nullptr) return {};
  const auto& lengths = call.inputs[4]->dims();
  if (lengths.rank() != 1 || !expect(lengths[0] == query[0])) {
    return infer::wrong(op, "lengths has shape {} but must have shape [{}].", lengths, query[0]);
  }
  return require_index(call, 4, "lengths");
}

// The strides of `tensor` broadcast to `dims`.
Dims spread(const Tensor& tensor, const Dims& dims) {
  return infer::broadcast_strides(tensor.dims(), tensor.strides(), dims);
}

}  // namespace

template <class Call>
Status infer_attention(const Call& call, typename Call::Meta* outputs) {
  return infer_result(call, &outputs[0]);
}

template <class Call>
Status infer_attention_with_log_sum(const Call& call, typename Call::Meta* outputs) {
  TENON_RETURN_IF_ERROR(infer_result(call, &outputs[0]));
  outputs[1].dtype = outputs[0].dtype == DType::f64 ? DType::f64 : DType::f32;
  outputs[1].dims = outputs[0].dims;
  outputs[1].dims[3] = 1;
  return {};
}

Status lower_attention(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  constexpr int32_t roles[] = {EP_ROLE_SRC, EP_ROLE_SRC_B, EP_ROLE_SRC_C};
  lowering->desc.attributes.attention = call.attributes_as<AttentionAttributes>().attention;
  for (size_t i : {0, 1}) lowering->scalar_dtypes[i] = outputs[0].dtype;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, outputs[0].dims, outputs[0].strides);
  if (outputs.size() > 1) lowering->output(EP_ROLE_LOG_SUM, 1, outputs[1].dtype, outputs[1].dims, outputs[1].strides);
  for (int i = 0; i < 3; ++i) {
    const Tensor& each = *call.inputs[static_cast<size_t>(i)];
    lowering->input(roles[i], i, each.dtype(), each.dims(), each.strides());
  }
  if (call.inputs[3] != nullptr) {
    Dims scores = call.inputs[0]->dims();
    scores[3] = call.inputs[1]->dims()[2];
    lowering->input(EP_ROLE_BIAS, 3, call.inputs[3]->dtype(), scores, spread(*call.inputs[3], scores));
  }
  if (call.inputs[4] != nullptr) {
    const Tensor& lengths = *call.inputs[4];
    lowering->input(EP_ROLE_LENGTHS, 4, lengths.dtype(), lengths.dims(), list_strides(lengths));
  }
  return {};
}

// Inputs: input, cosines, sines, and positions or null.
template <class Call>
Status infer_rotary(const Call& call, typename Call::Meta* outputs) {
  const std::string_view op = call.op->name;
  const auto& input = call.inputs[0]->dims();
  const auto& cosines = call.inputs[1]->dims();
  const auto& sines = call.inputs[2]->dims();
  const ep_rotary_attributes& at = call.template attributes_as<RotaryAttributes>().rotary;
  TENON_RETURN_IF_ERROR(require_choice(call, "mode", at.mode, EP_ROTARY_HALVES, EP_ROTARY_INTERLEAVED));
  TENON_RETURN_IF_ERROR(require_floating(call, 0, "input"));
  if (input.rank() != 4) return infer::wrong(op, "input has rank {}; it must be 4.", input.rank());
  if (cosines.rank() < 1 || cosines.rank() != sines.rank() ||
      !expect(cosines[cosines.rank() - 1] == sines[sines.rank() - 1])) {
    return infer::wrong(op, "cos has shape {}, but sin has {}.", cosines, sines);
  }
  if (call.inputs[1]->dtype() != call.inputs[2]->dtype() ||
      (call.inputs[1]->dtype() != DType::f32 && call.inputs[1]->dtype() != call.inputs[0]->dtype())) {
    return infer::wrong(op, "cos is {} and sin is {}; both must be f32 or {}.", dtype_name(call.inputs[1]->dtype()),
                        dtype_name(call.inputs[2]->dtype()), dtype_name(call.inputs[0]->dtype()));
  }
  const auto pairs = cosines[cosines.rank() - 1];
  if (!expect(pairs >= 1)) return infer::wrong(op, "cos of shape {} has no columns.", cosines);
  if (!expect(input[3] >= pairs + pairs)) {
    return infer::wrong(op, "{} pairs do not fit in rows of {} elements.", pairs, input[3]);
  }
  outputs[0].dtype = call.inputs[0]->dtype();
  outputs[0].dims = input;
  if (call.inputs[3] == nullptr) {
    auto all = input;
    all[3] = pairs;
    TENON_RETURN_IF_ERROR(check_broadcast(op, "cos", cosines, all));
    return check_broadcast(op, "sin", sines, all);
  }
  const auto& positions = call.inputs[3]->dims();
  if (cosines.rank() != 2 || !expect(cosines[0] == sines[0])) {
    return infer::wrong(op, "with positions, cos has shape {} and sin has {}; both must have one shape of rank 2.",
                        cosines, sines);
  }
  if (!expect(cosines[0] >= 1)) return infer::wrong(op, "cos of shape {} has no rows.", cosines);
  if (positions.rank() != 2 || !expect(positions[0] == input[0]) || !expect(positions[1] == input[2])) {
    return infer::wrong(op, "positions has shape {} but must have shape [{}, {}].", positions, input[0], input[2]);
  }
  return require_index(call, 3, "positions");
}

Status lower_rotary(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const Tensor& input = *call.inputs[0];
  lowering->desc.attributes.rotary = call.attributes_as<RotaryAttributes>().rotary;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, outputs[0].dims, outputs[0].strides);
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), input.dims(), input.strides());
  for (int i : {1, 2}) {
    const Tensor& angles = *call.inputs[static_cast<size_t>(i)];
    Dims dims = angles.dims();
    Dims strides = angles.strides();
    if (call.inputs[3] == nullptr) {
      dims = input.dims();
      dims[3] = angles.dims()[angles.rank() - 1];
      strides = spread(angles, dims);
    }
    lowering->input(i == 1 ? EP_ROLE_SRC_B : EP_ROLE_SRC_C, i, angles.dtype(), dims, strides);
  }
  if (call.inputs[3] == nullptr) return {};
  const Tensor& positions = *call.inputs[3];
  lowering->input(EP_ROLE_INDICES, 3, positions.dtype(), positions.dims(), positions.strides());
  return {};
}

template Status infer_attention(const OpCall&, TensorMeta*);
template Status infer_attention(const SymCall&, SymMeta*);
template Status infer_attention_with_log_sum(const OpCall&, TensorMeta*);
template Status infer_attention_with_log_sum(const SymCall&, SymMeta*);
template Status infer_rotary(const OpCall&, TensorMeta*);
template Status infer_rotary(const SymCall&, SymMeta*);

}  // namespace tenon::ops
