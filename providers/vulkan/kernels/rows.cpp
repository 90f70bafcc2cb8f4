#include "providers/vulkan/kernels/rows.h"

#include "providers/vulkan/kernels/element.h"

namespace tenon::provider::vulkan {
namespace {

constexpr int64_t most_row_bytes = INT64_C(1) << 30;

}  // namespace

Refusal why_no_rows(const ep_device& device, const ep_primitive_desc& desc, uint32_t walked) {
  if (desc.operand_count != 2 || desc.operands[0].role != EP_ROLE_DST || desc.operands[1].role != EP_ROLE_SRC) {
    return Refusal::because("its operands are not DST and SRC");
  }
  const ep_operand_desc& src = desc.operands[1];
  if (is_scalar(src) || src.rank < 1 || src.rank != desc.operands[0].rank) {
    return Refusal::because("operands of rank %d and %d", desc.operands[0].rank, src.rank);
  }
  if (walked == 0 || walked >> src.rank != 0)
    return Refusal::because("axes 0x%x are not axes of rank %d", walked, src.rank);
  if (is_dynamic(desc)) return Refusal::because("dims or strides are only known at launch");
  if (desc.epilogue_count != 0) return Refusal::because("%u epilogues", desc.epilogue_count);
  const uint32_t threads = device.context->most_threads();
  if (threads < row_threads) return Refusal::because("workgroups of %u; %u are needed", threads, row_threads);
  int64_t reach = dtype_size(src.dtype);
  for (int32_t axis = 0; axis < src.rank; ++axis) {
    if ((walked >> axis & 1U) != 0) reach += (src.dims[axis] - 1) * src.strides[axis] * dtype_size(src.dtype);
  }
  if (reach > most_row_bytes) return Refusal::because("a row of %lld bytes", static_cast<long long>(reach));
  return {};
}

uint32_t lane_bits_on(const ep_device& device, const RowsSpace& space) {
  return lane_bits_for(space, !device.context->packs);
}

int32_t block_for(const ep_device& device, const RowsSpace& space, int32_t operands) {
  return device.context->packs && lane_bits_on(device, space) != 0 ? space.block(operands) : 1;
}

Grid rows_grid(const ep_device& device, uint64_t values, uint32_t lane_bits, uint32_t threads) {
  return grid_of(divide_up(values, threads >> lane_bits), device.context->limits().maxComputeWorkGroupCount[0]);
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
    const uint64_t dst = address_of(launch.operands[0]) + static_cast<uint64_t>(piece.offsets[0] * piece.sizes[0]);
    const uint64_t src = address_of(launch.operands[1]) + static_cast<uint64_t>(piece.offsets[1] * piece.sizes[1]);
    const RowsPush push = {dst,
                           src,
                           range.address(),
                           static_cast<uint32_t>(values),
                           length,
                           length,
                           1,
                           length,
                           lane_bits_,
                           block_aligned(dst) && block_aligned(src) ? 1U : 0U};
    const Grid grid = rows_grid(*device, values, lane_bits_, threads_);
    return recording.add_dispatch({pipeline_->handle(), &push, sizeof push, {grid.x, grid.y, 1}}, error);
  });
}

}  // namespace tenon::provider::vulkan
