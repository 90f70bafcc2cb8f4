#include "providers/vulkan/kernels/rows.h"

#include "providers/vulkan/kernels/element.h"

namespace tenon::provider::vulkan {
namespace {

constexpr int64_t most_row_bytes = INT64_C(1) << 30;

}  // namespace

RowsSpace::RowsSpace(const ep_primitive_desc& desc, uint32_t walked) {
  const ep_operand_desc& dst = desc.operands[0];
  const ep_operand_desc& src = desc.operands[1];
  kept_.operands = walked_.operands = 2;
  for (Space* space : {&kept_, &walked_}) {
    space->sizes[0] = dtype_size(dst.dtype);
    space->sizes[1] = dtype_size(src.dtype);
  }
  int64_t nearest_kept = INT64_MAX;
  int64_t nearest_walked = INT64_MAX;
  for (int32_t axis = 0; axis < src.rank; ++axis) {
    const bool is_walked = (walked >> axis & 1U) != 0;
    Space& space = is_walked ? walked_ : kept_;
    space.dims[space.rank] = src.dims[axis];
    space.strides[0][space.rank] = dst.strides[axis];
    space.strides[1][space.rank] = src.strides[axis];
    ++space.rank;
    int64_t& nearest = is_walked ? nearest_walked : nearest_kept;
    if (src.dims[axis] > 1) nearest = std::min(nearest, src.strides[axis]);
  }
  length_ = walked_.count();
  rows_are_dense_ = nearest_kept < nearest_walked && kept_.count() > 1;
}

void RowsSpace::write(const Space& piece, RowsBlock* block) const {
  block->kept_rank = static_cast<uint32_t>(piece.rank);
  block->walked_rank = static_cast<uint32_t>(walked_.rank);
  for (int32_t axis = 0; axis < piece.rank; ++axis) {
    block->kept_dims[axis] = static_cast<uint32_t>(piece.dims[axis]);
    block->kept_dst[axis] = static_cast<uint32_t>(piece.strides[0][axis]);
    block->kept_src[axis] = static_cast<uint32_t>(piece.strides[1][axis]);
  }
  for (int32_t axis = 0; axis < walked_.rank; ++axis) {
    block->walked_dims[axis] = static_cast<uint32_t>(walked_.dims[axis]);
    block->walked_dst[axis] = static_cast<uint32_t>(walked_.strides[0][axis]);
    block->walked_src[axis] = static_cast<uint32_t>(walked_.strides[1][axis]);
  }
}

Refusal why_no_rows(const ep_device& device, const ep_primitive_desc& desc, uint32_t walked) {
  if (desc.operand_count != 2 || desc.operands[0].role != EP_ROLE_DST || desc.operands[1].role != EP_ROLE_SRC) {
    return Refusal::because("its operands are not DST and SRC");
  }
  const ep_operand_desc& src = desc.operands[1];
  if (is_scalar(src) || src.rank < 1 || src.rank != desc.operands[0].rank) {
    return Refusal::because("operands of rank %d and %d", desc.operands[0].rank, src.rank);
  }
  if (walked == 0 || walked >> src.rank != 0) return Refusal::because("axes 0x%x of rank %d", walked, src.rank);
  if (is_dynamic(desc)) return Refusal::because("dims or strides that come with the launch");
  if (desc.epilogue_count != 0) return Refusal::because("%u epilogues", desc.epilogue_count);
  if (device.context->limits().maxComputeWorkGroupInvocations < row_threads) {
    return Refusal::because("workgroups of %u; %u are needed", device.context->limits().maxComputeWorkGroupInvocations,
                            row_threads);
  }
  int64_t reach = dtype_size(src.dtype);
  for (int32_t axis = 0; axis < src.rank; ++axis) {
    if ((walked >> axis & 1U) != 0) reach += (src.dims[axis] - 1) * src.strides[axis] * dtype_size(src.dtype);
  }
  if (reach > most_row_bytes) return Refusal::because("a row of %lld bytes", static_cast<long long>(reach));
  return {};
}

uint32_t lane_bits_for(const RowsSpace& space) {
  if (space.rows_are_dense() || space.length() < 16) return 0;
  return space.length() <= 384 ? 5 : 8;
}

Grid rows_grid(const ep_device& device, uint64_t values, uint32_t lane_bits) {
  return grid_of(divide_up(values, row_threads >> lane_bits), device.context->limits().maxComputeWorkGroupCount[0]);
}

ep_status RowPrimitive::launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const {
  CommandStream::Recording recording(*stream.commands);
  return for_each_piece(space_.kept(), [&](const Space& piece) {
    StagedRange range;
    if (const ep_status status = recording.parameters(sizeof(RowsBlock), &range, error); status != EP_STATUS_OK) {
      return status;
    }
    space_.write(piece, reinterpret_cast<RowsBlock*>(range.host()));
    const uint64_t values = static_cast<uint64_t>(piece.count());
    const auto length = static_cast<uint32_t>(space_.length());
    const RowsPush push = {address_of(launch.operands[0]) + static_cast<uint64_t>(piece.offsets[0] * piece.sizes[0]),
                           address_of(launch.operands[1]) + static_cast<uint64_t>(piece.offsets[1] * piece.sizes[1]),
                           range.address(),
                           static_cast<uint32_t>(values),
                           length,
                           length,
                           1,
                           length,
                           lane_bits_};
    const Grid grid = rows_grid(*device, values, lane_bits_);
    return recording.add_dispatch({pipeline_->handle(), &push, sizeof push, {grid.x, grid.y, 1}}, error);
  });
}

}  // namespace tenon::provider::vulkan
