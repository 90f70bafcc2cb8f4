// The rule of linear_algebra: the results of each op on matrices, which are the last two axes.
#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/rules/guards.h"
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

// The number of results of an op, and the flags it takes.
struct Traits {
  size_t results;
  bool square;
  int32_t flags;
};

Traits traits_of(int32_t op) {
  switch (op) {
    case EP_LINEAR_TRIANGULAR_SOLVE: return {1, true, EP_LINEAR_FLAG_UPPER | EP_LINEAR_FLAG_UNIT};
    case EP_LINEAR_LEAST_SQUARES: return {1, false, 0};
    case EP_LINEAR_CHOLESKY: return {1, true, EP_LINEAR_FLAG_UPPER};
    case EP_LINEAR_LOG_DETERMINANT: return {2, true, 0};
    case EP_LINEAR_LU:
    case EP_LINEAR_QR: return {2, false, 0};
    case EP_LINEAR_SVD: return {3, false, 0};                      // one result if only the values are computed
    case EP_LINEAR_EIGEN: return {2, true, EP_LINEAR_FLAG_UPPER};  // one result if only the values are computed
    default: return {1, true, 0};
  }
}

template <class Call>
Status check_matrices(const Call& call, const LinearAlgebraAttributes& attributes) {
  const std::string_view name = call.op->name;
  const int32_t op = attributes.how.op;
  TENON_RETURN_IF_ERROR(require_choice(call, "op", op, EP_LINEAR_SOLVE, EP_LINEAR_EIGEN));
  const Traits traits = traits_of(op);
  const size_t inputs = op <= EP_LINEAR_LEAST_SQUARES ? 2 : 1;
  const size_t results = call.op->output_count;
  const bool values_alone = (op == EP_LINEAR_SVD || op == EP_LINEAR_EIGEN) && results == 1;
  if (call.inputs.size() != inputs || (results != traits.results && !values_alone)) {
    return infer::wrong(name, "has {} inputs and {} results, but its op {} has {} and {}.", call.inputs.size(), results,
                        op, inputs, traits.results);
  }
  TENON_RETURN_IF_ERROR(require_flags(call, attributes.how.flags, traits.flags));
  TENON_RETURN_IF_ERROR(require_floating(call, 0, "input"));
  const auto& dims = call.inputs[0]->dims();
  const int32_t rank = dims.rank();
  if (rank < 2) return infer::wrong(name, "input of shape {} must have at least 2 axes.", dims);
  const auto m = dims[rank - 2], n = dims[rank - 1];
  if (!expect(m >= 1) || !expect(n >= 1)) {
    return infer::wrong(name, "the matrices of input, of shape {}, have no elements.", dims);
  }
  if (traits.square && !expect(m == n)) return infer::wrong(name, "input of shape {} must hold square matrices.", dims);
  const bool counts = op == EP_LINEAR_LU || op == EP_LINEAR_QR || op == EP_LINEAR_SVD;
  const auto k = size_of(call, attributes.k);
  const bool complete = op == EP_LINEAR_QR && identical(k, m);
  if (counts && !complete && !expect(k == min_size(m, n))) {
    return infer::wrong(name, "k is {}, which is not the lesser side of matrices of shape {}.", k, dims);
  }
  if (inputs == 1) return {};
  TENON_RETURN_IF_ERROR(require_dtype(call, 1, "other", call.inputs[0]->dtype()));
  const auto& other = call.inputs[1]->dims();
  if (other.rank() != rank) {
    return infer::wrong(name, "other of shape {} must have the rank of input of shape {}.", other, dims);
  }
  auto wanted = dims;
  wanted[rank - 1] = other[rank - 1];
  return require_shape(call, 1, "other", wanted);
}

}  // namespace

template <class Call>
Status infer_linear_algebra(const Call& call, typename Call::Meta* outputs) {
  using Size = typename Call::Size;
  const auto& attributes = call.template attributes_as<LinearAlgebraAttributes>();
  TENON_RETURN_IF_ERROR(check_matrices(call, attributes));
  const auto& input = *call.inputs[0];
  const int32_t rank = input.rank();
  const Size m = input.dims()[rank - 2];
  const Size n = input.dims()[rank - 1];
  const Size k = size_of(call, attributes.k);
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
      if (call.op->output_count > 1) outputs[1].dims = input.dims();
      break;
    default: outputs[0].dims = input.dims();
  }
  return checked_numbers(call, outputs[0].dims);
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
