#include "providers/vulkan/kernels/row_space.h"

#include <algorithm>

#include "sdk/provider/descriptor.h"

namespace tenon::provider::vulkan {

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
    const int32_t last = space.rank - 1;
    const bool joins = is_walked && last >= 0;  // only a row along one axis can have a dst
    if (joins && src.dims[axis] == 1) continue;
    if (joins && (space.dims[last] == 1 || space.strides[1][last] == src.dims[axis] * src.strides[axis])) {
      space.dims[last] *= src.dims[axis];
      space.strides[1][last] = src.strides[axis];
    } else {
      space.dims[space.rank] = src.dims[axis];
      space.strides[0][space.rank] = dst.strides[axis];
      space.strides[1][space.rank] = src.strides[axis];
      ++space.rank;
    }
    int64_t& nearest = is_walked ? nearest_walked : nearest_kept;
    if (src.dims[axis] > 1) nearest = std::min(nearest, src.strides[axis]);
  }
  length_ = walked_.count();
  rows_are_dense_ = nearest_kept < nearest_walked && kept_.count() > 1;
}

int32_t RowsSpace::block(int32_t operands) const {
  if (walked_.rank != 1 || length_ == 1) return 1;
  const int32_t elements = 16 / walked_.sizes[1];
  for (int32_t i = 1; i > 1 - operands; --i) {
    if (walked_.strides[i][0] != 1 || walked_.sizes[i] != walked_.sizes[1]) return 1;
    for (int32_t axis = 0; axis < kept_.rank; ++axis) {
      if (kept_.dims[axis] > 1 && kept_.strides[i][axis] % elements != 0) return 1;
    }
  }
  return elements;
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

uint32_t lane_bits_for(const RowsSpace& space, bool software) {
  if (space.rows_are_dense() || space.length() < 16) return 0;
  if (software) return space.length() <= 384 ? 5 : 8;
  constexpr int64_t enough_invocations = 65536;
  uint32_t bits = 5;
  const auto too_few = [&] {
    if (space.length() > most_held << bits) return true;
    return space.length() > most_held / 4 << bits && space.rows() < enough_invocations >> bits;
  };
  while (bits < 8 && too_few()) ++bits;
  return bits;
}

}  // namespace tenon::provider::vulkan
