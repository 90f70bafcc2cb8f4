// Splits the axes of an operand into walked axes, which span a row, and kept axes, which number the rows. Pure.
#pragma once

#include "providers/vulkan/kernels/geometry.h"

namespace tenon::provider::vulkan {

// Mirrors the block of shaders/rows.glsl.
struct RowsBlock {
  uint32_t kept_rank;
  uint32_t walked_rank;
  uint32_t kept_dims[EP_MAX_RANK];
  uint32_t kept_dst[EP_MAX_RANK];
  uint32_t kept_src[EP_MAX_RANK];
  uint32_t walked_dims[EP_MAX_RANK];
  uint32_t walked_src[EP_MAX_RANK];
  uint32_t walked_dst[EP_MAX_RANK];
};

inline constexpr uint32_t row_threads = 256;

// The rows of one static descriptor. `walked` is a mask of axes. Operand 0 is DST, operand 1 SRC.
class RowsSpace {
 public:
  RowsSpace() = default;
  RowsSpace(const ep_primitive_desc& desc, uint32_t walked);

  const Space& kept() const { return kept_; }
  int64_t rows() const { return kept_.count(); }
  int64_t length() const { return length_; }
  // True if neighbouring rows are closer in memory than neighbouring elements of a row.
  bool rows_are_dense() const { return rows_are_dense_; }
  // The number of elements in 16 bytes, if the rows of the first `operands` of SRC and DST are contiguous and begin at
  // multiples of 16 bytes; else 1.
  int32_t block(int32_t operands) const;
  // Writes the parameters of one piece of kept().
  void write(const Space& piece, RowsBlock* block) const;

 private:
  Space kept_;
  Space walked_;
  int64_t length_ = 1;
  bool rows_are_dense_ = false;
};

// The binary logarithm of the number of invocations that share a row: on a software device, of 1, 32 or 256. A GPU uses
// as few invocations, at least 32, as hold the row in `most_held` elements each, since invocations wait for each other
// at each barrier; and up to 256 if there are too few rows to fill the device.
inline constexpr int64_t most_held = 32;
uint32_t lane_bits_for(const RowsSpace& space, bool software);

}  // namespace tenon::provider::vulkan
