#include "providers/opencl/kernels/axes.h"

#include <algorithm>

namespace tenon::provider::opencl {
namespace {

constexpr uint64_t short_row = 32;

uint64_t nearest(const uint64_t* dims, const uint64_t* strides, int32_t rank) {
  uint64_t least = UINT64_MAX;
  for (int32_t axis = 0; axis < rank; ++axis) {
    if (dims[axis] > 1) least = std::min(least, strides[axis]);
  }
  return least;
}

}  // namespace

Refusal why_no_rows(const ep_primitive_desc& desc, uint32_t src, uint32_t walked) {
  const ep_operand_desc& from = desc.operands[src];
  if (desc.operands[0].role != EP_ROLE_DST || from.role != EP_ROLE_SRC) {
    return Refusal::because("its first operands are not DST and SRC");
  }
  if (is_scalar(from) || from.rank < 1 || from.rank != desc.operands[0].rank) {
    return Refusal::because("operands of rank %d and %d", desc.operands[0].rank, from.rank);
  }
  if (walked == 0 || walked >> from.rank != 0)
    return Refusal::because("axes 0x%x are not axes of rank %d", walked, from.rank);
  if (is_dynamic(desc)) return Refusal::because("dims or strides are only known at launch");
  return {};
}

RowParameters rows_of(const ep_operand_desc& dst, const ep_operand_desc& src, uint32_t walked) {
  RowParameters rows{};
  rows.rows = rows.length = rows.parts = 1;
  for (int32_t axis = 0; axis < src.rank; ++axis) {
    const auto dim = static_cast<uint64_t>(src.dims[axis]);
    const bool is_walked = (walked >> axis & 1U) != 0;
    (is_walked ? rows.length : rows.rows) *= dim;
    if (dim == 1) continue;
    const int32_t at = is_walked ? rows.walked_rank++ : rows.kept_rank++;
    (is_walked ? rows.walked_dims : rows.kept_dims)[at] = dim;
    (is_walked ? rows.walked_dst : rows.kept_dst)[at] = static_cast<uint64_t>(dst.strides[axis]);
    (is_walked ? rows.walked_src : rows.kept_src)[at] = static_cast<uint64_t>(src.strides[axis]);
  }
  if (rows.walked_rank == 0) {  // kernels need at least one stride
    rows.walked_rank = 1;
    rows.walked_dims[0] = 1;
  }
  rows.part_length = rows.length;
  return rows;
}

bool prefers_items(const RowParameters& rows) {
  if (rows.length < short_row) return true;
  return nearest(rows.kept_dims, rows.kept_src, rows.kept_rank) <
         nearest(rows.walked_dims, rows.walked_src, rows.walked_rank);
}

}  // namespace tenon::provider::opencl
