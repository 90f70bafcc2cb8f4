#include "providers/cuda/movement/indexing.h"

#include <algorithm>

#include "providers/cuda/kernels/element.h"

namespace tenon::provider::cuda {
namespace {

bool is_index_mode(int32_t mode) {
  return mode == EP_GATHER_SLICES || mode == EP_GATHER_ELEMENTS || mode == EP_GATHER_COORDINATES;
}

}  // namespace

Refusal why_no_indexing(int32_t axis, int32_t mode, const ep_operand_desc& walked, const ep_operand_desc& whole,
                        const ep_operand_desc& indices) {
  if (!is_index_mode(mode)) return Refusal::because("mode %d", mode);
  if (is_scalar(walked) || is_scalar(whole) || is_scalar(indices)) return Refusal::because("a scalar operand");
  if (dtype_size(whole.dtype) == 0) return Refusal::because("%s is packed", dtype_name(whole.dtype));
  if (walked.dtype != whole.dtype)
    return Refusal::because("elements of %s and %s", dtype_name(walked.dtype), dtype_name(whole.dtype));
  if (indices.dtype != EP_DTYPE_i32 && indices.dtype != EP_DTYPE_i64)
    return Refusal::because("indices of %s", dtype_name(indices.dtype));
  if (axis < 0 || axis >= whole.rank) return Refusal::because("axis %d of rank %d", axis, whole.rank);
  if (mode == EP_GATHER_COORDINATES) {
    // The ranks give the number of coordinates; if the dim is EP_ANY, the launch gives it.
    const int32_t coordinates = indices.rank - 1 + whole.rank - axis - walked.rank;
    const bool fits = indices.rank > axis && coordinates >= 1 && coordinates <= whole.rank - axis;
    if (!fits) return Refusal::because("ranks %d, %d and %d", walked.rank, whole.rank, indices.rank);
    const int64_t given = indices.dims[indices.rank - 1];
    if (given != EP_ANY && given != coordinates)
      return Refusal::because("%lld coordinates instead of %d", static_cast<long long>(given), coordinates);
    return {};
  }
  const int32_t rank = mode == EP_GATHER_SLICES ? whole.rank - 1 + indices.rank : whole.rank;
  if (walked.rank != rank || (mode == EP_GATHER_ELEMENTS && indices.rank != rank))
    return Refusal::because("ranks %d, %d and %d", walked.rank, whole.rank, indices.rank);
  return {};
}

Indexing indexing_of(int32_t axis, int32_t mode, const OperandShape& walked, const OperandShape& whole,
                     const OperandShape& indices, bool numbered) {
  Indexing indexing;
  int64_t in_whole[EP_MAX_RANK] = {};
  int64_t in_indices[EP_MAX_RANK] = {};
  std::copy_n(whole.strides, axis, in_whole);
  int32_t after = 0;  // first axis of the walk after the indexed ones
  if (mode == EP_GATHER_COORDINATES) {
    after = indices.rank - 1;
    indexing.coordinates = static_cast<int32_t>(indices.dims[after]);
    indexing.coordinate_stride = indices.strides[after];
    std::copy_n(indices.strides, after, in_indices);
  } else if (mode == EP_GATHER_SLICES) {
    after = axis + indices.rank;
    std::copy_n(indices.strides, indices.rank, in_indices + axis);
  } else {
    after = axis + 1;
    std::copy_n(indices.strides, indices.rank, in_indices);
  }
  std::copy_n(whole.dims + axis, indexing.coordinates, indexing.lengths);
  std::copy_n(whole.strides + axis, indexing.coordinates, indexing.strides);
  const int32_t rest = axis + indexing.coordinates;
  std::copy_n(whole.strides + rest, whole.rank - rest, in_whole + after);
  int64_t numbers[EP_MAX_RANK] = {};
  int64_t count = 1;
  for (int32_t k = walked.rank - 1; k >= 0; --k) {
    numbers[k] = count;
    count *= walked.dims[k];
  }
  const OperandShape operands[] = {walked,
                                   {walked.dims, in_whole, walked.rank},
                                   {walked.dims, in_indices, walked.rank},
                                   {walked.dims, numbers, walked.rank}};
  indexing.shape = folded(indexing_plan(EP_DTYPE_u8, EP_DTYPE_i64, numbered), operands);
  return indexing;
}

MapPlan indexing_plan(int32_t dtype, int32_t index_dtype, bool numbered) {
  MapPlan plan;
  plan.count = numbered ? 4 : 3;
  plan.dtypes[0] = plan.dtypes[1] = dtype;
  plan.dtypes[2] = index_dtype;
  plan.dtypes[3] = EP_DTYPE_u8;  // a stride of 1 is then one number
  return plan;
}

IndexArguments index_arguments(const MapPlan& plan, const Indexing& indexing, const MapShape& piece,
                               const MapOperands& operands) {
  IndexArguments index{};
  index.map = map_arguments(plan, piece, operands);
  index.coordinates = indexing.coordinates;
  index.coordinate_stride = indexing.coordinate_stride;
  std::copy_n(indexing.lengths, EP_MAX_RANK, index.lengths);
  std::copy_n(indexing.strides, EP_MAX_RANK, index.strides);
  const int64_t size = dtype_size(plan.dtypes[1]);
  for (int32_t i = 0; i < index.coordinates; ++i) {
    if (index.strides[i] * size % pack_alignment(size) != 0) index.map.operands[1].vector = 0;
  }
  return index;
}

}  // namespace tenon::provider::cuda
