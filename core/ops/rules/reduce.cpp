// Reductions and positions of extrema. Results are written as if reduced axes had length 1.
#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/sym_call.h"
#include "primitives/infer/reduce-inl.h"
#include "primitives/infer/types.h"

namespace tenon::ops {
namespace {

// The output's strides along all axes of the input; 0 along the axes in `axes`.
Dims full_strides(const Dims& input, const Dims& output_strides, uint32_t axes, bool keep_dims) {
  Dims strides;
  int32_t next = 0;
  for (int32_t axis = 0; axis < input.rank(); ++axis) {
    const bool reduced = (axes >> axis & 1) != 0;
    strides.push_back(reduced ? 0 : output_strides[next]);
    if (!reduced || keep_dims) ++next;
  }
  return strides;
}

Dims reduced_dims(Dims dims, uint32_t axes) {
  for (int32_t axis = 0; axis < dims.rank(); ++axis) {
    if ((axes >> axis & 1) != 0) dims[axis] = 1;
  }
  return dims;
}

}  // namespace

template <class Call>
Status infer_reduce(const Call& call, typename Call::Meta* outputs) {
  const auto& attributes = call.template attributes_as<ReduceAttributes>();
  const auto& input = *call.inputs[0];
  outputs->dtype = input.dtype();
  outputs->dims = infer::reduce<typename Call::Size>(input.dims(), attributes.axes, attributes.keep_dims != 0);
  return {};
}

Status lower_reduce(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const auto& attributes = call.attributes_as<ReduceAttributes>();
  const Tensor& input = *call.inputs[0];
  uint32_t axes = attributes.axes;
  Folding folding(input.dims());
  folding.add(full_strides(input.dims(), outputs[0].strides, axes, attributes.keep_dims != 0));
  folding.add(input.strides());
  folding.fold_reduce(&axes);
  lowering->desc.attributes.reduce.op = call.op->scalar_op;
  lowering->desc.attributes.reduce.axes = axes;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, reduced_dims(folding.dims(), axes), folding.strides(0));
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), folding.dims(), folding.strides(1));
  return {};
}

template <class Call>
Status infer_arg_reduce(const Call& call, typename Call::Meta* outputs) {
  const auto& attributes = call.template attributes_as<ArgReduceAttributes>();
  TENON_RETURN_IF_ERROR(infer::require_elements(call.op->name, call.inputs[0]->dims(), 1u << attributes.axis));
  outputs->dtype = DType::i64;
  outputs->dims =
      infer::reduce<typename Call::Size>(call.inputs[0]->dims(), 1u << attributes.axis, attributes.keep_dims != 0);
  return {};
}

Status lower_arg_reduce(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const auto& attributes = call.attributes_as<ArgReduceAttributes>();
  const Tensor& input = *call.inputs[0];
  Dims strides = full_strides(input.dims(), outputs[0].strides, 1u << attributes.axis, attributes.keep_dims != 0);
  strides[attributes.axis] = 1;
  Folding folding(input.dims());
  folding.add(strides);
  folding.add(input.strides());
  const int32_t axis = folding.fold_around(attributes.axis);
  lowering->desc.attributes.arg_reduce.op = call.op->scalar_op;
  lowering->desc.attributes.arg_reduce.axis = axis;
  lowering->desc.attributes.arg_reduce.last = attributes.last;
  lowering->output(EP_ROLE_DST, 0, DType::i64, folding.dims_with(axis, 1), folding.strides(0));
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), folding.dims(), folding.strides(1));
  return {};
}

template Status infer_arg_reduce(const OpCall&, TensorMeta*);
template Status infer_arg_reduce(const SymCall&, SymMeta*);
template Status infer_reduce(const OpCall&, TensorMeta*);
template Status infer_reduce(const SymCall&, SymMeta*);

}  // namespace tenon::ops
