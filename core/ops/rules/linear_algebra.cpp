// The rule of linear_algebra: what each op gives of matrices, which are the last two axes.
#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/sym_call.h"

namespace tenon::ops {
namespace {

// The roles of the outputs of `op`.
std::array<int32_t, 3> roles_of(int32_t op) {
  switch (op) {
    case EP_LINEAR_LOG_DETERMINANT: return {EP_ROLE_DST, EP_ROLE_DST_LOG};
    case EP_LINEAR_LU: return {EP_ROLE_DST, EP_ROLE_DST_PIVOTS};
    case EP_LINEAR_QR: return {EP_ROLE_DST, EP_ROLE_DST_R};
    default: return {EP_ROLE_DST, EP_ROLE_DST_VECTORS, EP_ROLE_DST_VECTORS_H};
  }
}

}  // namespace

template <class Call>
Status infer_linear_algebra(const Call& call, typename Call::Meta* outputs) {
  using Size = typename Call::Size;
  const auto& attributes = call.template attributes_as<LinearAlgebraAttributes>();
  const auto& input = *call.inputs[0];
  const int32_t rank = input.rank();
  const Size m = input.dims()[rank - 2];
  const Size n = input.dims()[rank - 1];
  const Size k = attributes.k;
  const auto with = [&](std::initializer_list<Size> sides) {
    BasicDims<Size> dims = input.dims();
    dims.resize(rank - 2);
    for (const Size& side : sides) dims.push_back(side);
    return dims;
  };
  for (size_t i = 0; i < 3 && i < call.op->output_count; ++i) outputs[i].dtype = input.dtype();
  switch (attributes.how.op) {
    case EP_LINEAR_SOLVE:
    case EP_LINEAR_TRIANGULAR_SOLVE:
    case EP_LINEAR_LEAST_SQUARES: outputs[0].dims = with({n, call.inputs[1]->dims()[rank - 1]}); break;
    case EP_LINEAR_DETERMINANT: outputs[0].dims = with({}); break;
    case EP_LINEAR_LOG_DETERMINANT: outputs[0].dims = outputs[1].dims = with({}); break;
    case EP_LINEAR_LU:
      outputs[0].dims = input.dims();
      outputs[1].dims = with({k});
      outputs[1].dtype = DType::i32;
      break;
    case EP_LINEAR_QR:
      outputs[0].dims = with({m, k});
      outputs[1].dims = with({k, n});
      break;
    case EP_LINEAR_SVD:
      outputs[0].dims = with({k});
      if (call.op->output_count == 1) break;
      outputs[1].dims = with({m, k});
      outputs[2].dims = with({k, n});
      break;
    case EP_LINEAR_EIGEN:
      outputs[0].dims = with({n});
      outputs[1].dims = input.dims();
      break;
    default: outputs[0].dims = input.dims();
  }
  return {};
}

Status lower_linear_algebra(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const auto& attributes = call.attributes_as<LinearAlgebraAttributes>();
  lowering->desc.attributes.linear_algebra = attributes.how;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorMeta& output = outputs[i];
    const bool one = output.dims.rank() == 0;
    lowering->output(roles_of(attributes.how.op)[i], static_cast<int>(i), output.dtype, one ? Dims{1} : output.dims,
                     one ? Dims{1} : output.strides);
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& input = *call.inputs[i];
    lowering->input(i == 0 ? EP_ROLE_SRC : EP_ROLE_SRC_B, static_cast<int>(i), input.dtype(), input.dims(),
                    input.strides());
  }
  return {};
}

template Status infer_linear_algebra(const OpCall&, TensorMeta*);
template Status infer_linear_algebra(const SymCall&, SymMeta*);

}  // namespace tenon::ops
