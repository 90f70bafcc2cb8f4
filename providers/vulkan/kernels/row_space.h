// The axes of an operand split into those that are walked (a row) and those that are kept (they number the rows). Pure.
#pragma once

#include "providers/vulkan/kernels/geometry.h"

namespace tenon::provider::vulkan {

// As shaders/rows.glsl has it.
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

// The rows of one descriptor: `walked` is a mask of axes. Operand 0 is DST, operand 1 SRC, static.
class RowsSpace {
 public:
  RowsSpace() = default;
  RowsSpace(const ep_primitive_desc& desc, uint32_t walked);

  const Space& kept() const { return kept_; }
  int64_t rows() const { return kept_.count(); }
  int64_t length() const { return length_; }
  // True if neighbouring rows lie nearer to each other than neighbours in a row.
  bool rows_are_dense() const { return rows_are_dense_; }
  // Neighbouring elements of a row that fill 16 bytes, where every row's elements lie one after the other and rows
  // begin at multiples of them, in the first `operands` of SRC and DST; else 1.
  int32_t block(int32_t operands) const;
  // The parameters of one piece of kept().
  void write(const Space& piece, RowsBlock* block) const;

 private:
  Space kept_;
  Space walked_;
  int64_t length_ = 1;
  bool rows_are_dense_ = false;
};

// 2 to the power of this many invocations share a row: 1, 32 or 256.
uint32_t lane_bits_for(const RowsSpace& space);

}  // namespace tenon::provider::vulkan
