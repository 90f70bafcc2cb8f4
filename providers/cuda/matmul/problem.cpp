#include "providers/cuda/matmul/problem.h"

#include <algorithm>

namespace tenon::provider::cuda {
namespace {

constexpr int64_t most_calls = 256;
constexpr int64_t most_batch = 0x7fffffff;  // cuBLASLt counts batches in 32 bits

// The matrix of an operand (its last two axes) as cuBLASLt sees it: transposed, in columns.
Refusal as_columns(const ep_operand_desc& operand, uint32_t index, LtMatrix* out) {
  const int32_t rank = operand.rank;
  const int64_t rows = operand.dims[rank - 2];
  const int64_t columns = operand.dims[rank - 1];
  const int64_t row_stride = operand.strides[rank - 2];
  const int64_t column_stride = operand.strides[rank - 1];
  if (columns == 1 || column_stride == 1) {
    *out = {columns, rows, rows == 1 ? columns : row_stride, 0, false};
  } else if (rows == 1 || row_stride == 1) {
    *out = {rows, columns, column_stride, 0, true};
  } else {
    return Refusal::because("operand %u has strides %lld and %lld in its matrix, neither is 1", index,
                            static_cast<long long>(row_stride), static_cast<long long>(column_stride));
  }
  if (out->ld >= out->rows) return {};
  return Refusal::because("operand %u has matrix rows that overlap: %lld elements, %lld apart", index,
                          static_cast<long long>(out->rows), static_cast<long long>(out->ld));
}

// True if the bias varies only along the columns of DST.
bool is_row_bias(const ep_operand_desc& bias) {
  const int32_t last = bias.rank - 1;
  if (bias.dims[last] != 1 && bias.strides[last] != 1) return false;
  for (int32_t axis = 0; axis < last; ++axis) {
    if (bias.dims[axis] != 1 && bias.strides[axis] != 0) return false;
  }
  return true;
}

// True if the matrices of `operand` have the layout of DST, so that cuBLASLt can add the operand as C.
bool may_be_c(const ep_operand_desc& operand, const ep_operand_desc& dst) {
  const int32_t rank = dst.rank;
  LtMatrix matrix;
  if (operand.dtype != dst.dtype || as_columns(operand, 0, &matrix)) return false;
  const bool moves = operand.dims[rank - 2] == 1 || operand.strides[rank - 2] != 0;
  return !matrix.transposed && moves;
}

struct Axis {
  int64_t dim;
  int64_t strides[lt_operands];
};

int32_t batch_axes(const ep_primitive_desc& desc, const LtProblem& problem, Axis* axes) {
  const ep_operand_desc& dst = desc.operands[0];
  int32_t count = 0;
  for (int32_t axis = 0; axis < dst.rank - 2; ++axis) {
    if (dst.dims[axis] == 1) continue;
    Axis& added = axes[count++];
    added = {dst.dims[axis], {}};
    for (int32_t i = 0; i < lt_operands; ++i) {
      if (problem.operands[i] >= 0) added.strides[i] = desc.operands[problem.operands[i]].strides[axis];
    }
    if (count < 2) continue;
    Axis& outer = axes[count - 2];
    bool continues = true;
    for (int32_t i = 0; i < lt_operands; ++i) continues = continues && outer.strides[i] == added.dim * added.strides[i];
    if (!continues) continue;
    const int64_t dim = outer.dim * added.dim;
    outer = added;
    outer.dim = dim;
    --count;
  }
  return count;
}

// True if SRC_B is the same for the whole batch and the rows of the other operands continue from matrix to matrix. The
// batch then only means more rows.
bool batch_is_rows(const LtProblem& problem, const Axis& axis) {
  if (axis.strides[LT_SRC_B] != 0) return false;
  for (const int32_t i : {LT_D, LT_SRC, LT_C}) {
    if (i == LT_C && problem.operands[LT_C] < 0) continue;
    const LtMatrix& matrix = problem.matrices[i];
    if (matrix.transposed || axis.strides[i] != matrix.columns * matrix.ld) return false;
  }
  return true;
}

Refusal set_batch(const ep_primitive_desc& desc, LtProblem* problem) {
  Axis axes[EP_MAX_RANK];
  const int32_t count = batch_axes(desc, *problem, axes);
  if (count == 0) return {};
  if (count == 1 && batch_is_rows(*problem, axes[0])) {
    for (const int32_t i : {LT_D, LT_SRC, LT_C}) problem->matrices[i].columns *= axes[0].dim;
    return {};
  }
  const auto longest = static_cast<int32_t>(
      std::max_element(axes, axes + count, [](const Axis& a, const Axis& b) { return a.dim < b.dim; }) - axes);
  problem->batch = axes[longest].dim;
  if (problem->batch > most_batch) {
    return Refusal::because("a batch of %lld", static_cast<long long>(problem->batch));
  }
  for (int32_t i = 0; i < lt_operands; ++i) problem->matrices[i].batch_stride = axes[longest].strides[i];
  for (int32_t axis = 0; axis < count; ++axis) {
    if (axis == longest) continue;
    problem->outer_dims[problem->outer_rank] = axes[axis].dim;
    for (int32_t i = 0; i < lt_operands; ++i) problem->outer_strides[i][problem->outer_rank] = axes[axis].strides[i];
    ++problem->outer_rank;
  }
  if (problem->outer_count() <= most_calls) return {};
  return Refusal::because("its batches need %lld calls, more than %lld", static_cast<long long>(problem->outer_count()),
                          static_cast<long long>(most_calls));
}

// Moves bias and epilogues into the call, in order, as far as they fit. A Tail computes the rest.
void fuse(const ep_primitive_desc& desc, const LtFusion& fusion, LtProblem* problem) {
  const ep_operand_desc& dst = desc.operands[0];
  const int32_t bias = find_operand(desc, EP_ROLE_BIAS);
  if (bias >= 0) {
    const ep_operand_desc& operand = desc.operands[bias];
    if (fusion.bias && operand.dtype == dst.dtype && is_row_bias(operand)) {
      problem->bias = bias;
    } else if (fusion.c && may_be_c(operand, dst)) {
      problem->operands[LT_C] = bias;
    } else {
      problem->tail_bias = bias;
      return;
    }
  }
  uint32_t& next = problem->first_epilogue;
  if (next < desc.epilogue_count && fusion.c && problem->operands[LT_C] < 0) {
    const ep_epilogue& epilogue = desc.epilogues[next];
    const int32_t added = epilogue.role != 0 ? find_operand(desc, epilogue.role) : -1;
    const bool adds = epilogue.arity == 2 && epilogue.op == EP_BINARY_add && added >= 0;
    if (adds && may_be_c(desc.operands[added], dst)) {
      problem->operands[LT_C] = added;
      ++next;
    }
  }
  if (next < desc.epilogue_count && fusion.relu && desc.epilogues[next].arity == 1 &&
      desc.epilogues[next].op == EP_UNARY_relu) {
    problem->relu = true;
    ++next;
  }
}

}  // namespace

int64_t LtProblem::outer_count() const {
  int64_t count = 1;
  for (int32_t axis = 0; axis < outer_rank; ++axis) count *= outer_dims[axis];
  return count;
}

Refusal make_problem(const ep_primitive_desc& desc, const LtFusion& fusion, LtProblem* out) {
  LtProblem problem;
  problem.operands[LT_D] = 0;
  problem.operands[LT_SRC] = find_operand(desc, EP_ROLE_SRC);
  problem.operands[LT_SRC_B] = find_operand(desc, EP_ROLE_SRC_B);
  fuse(desc, fusion, &problem);
  for (int32_t i = 0; i < lt_operands; ++i) {
    if (problem.operands[i] < 0) continue;
    const auto index = static_cast<uint32_t>(problem.operands[i]);
    if (Refusal refusal = as_columns(desc.operands[index], index, &problem.matrices[i])) return refusal;
  }
  if (problem.matrices[LT_D].transposed) return Refusal::because("the columns of the result do not follow each other");
  if (Refusal refusal = set_batch(desc, &problem)) return refusal;
  *out = problem;
  return {};
}

}  // namespace tenon::provider::cuda
