// Rows: what reduce, arg_reduce and softmax have in common. The axes of an operand are split into those that are walked
// (a row) and those that are kept (they number the rows).
#pragma once

#include "providers/vulkan/kernels/geometry.h"
#include "providers/vulkan/primitive.h"

namespace tenon::provider::vulkan {

// As shaders/rows.glsl has them.
struct RowsPush {
  uint64_t dst;
  uint64_t src;
  uint64_t shape;
  uint32_t values;
  uint32_t row_length;
  uint32_t count;
  uint32_t parts;
  uint32_t part_length;
  uint32_t lane_bits;
};
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
  // The block of one piece of kept().
  void write(const Space& piece, RowsBlock* block) const;

 private:
  Space kept_;
  Space walked_;
  int64_t length_ = 1;
  bool rows_are_dense_ = false;
};

// Why `desc` is no DST and SRC of one rank of at least 1, static, the rows not too long for 32-bit indices.
Refusal why_no_rows(const ep_device& device, const ep_primitive_desc& desc, uint32_t walked);

// 2 to the power of this many invocations share a row: 1, 32 or 256.
uint32_t lane_bits_for(const RowsSpace& space);

// The dispatch of `values` values with 2^lane_bits invocations each.
Grid rows_grid(const ep_device& device, uint64_t values, uint32_t lane_bits);

// A primitive that is one dispatch over rows.
class RowPrimitive final : public ep_primitive {
 public:
  RowPrimitive(const RowsSpace& space, std::shared_ptr<Pipeline> pipeline)
      : space_(space), lane_bits_(lane_bits_for(space)), pipeline_(std::move(pipeline)) {}
  ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const override;

 private:
  RowsSpace space_;
  uint32_t lane_bits_;
  std::shared_ptr<Pipeline> pipeline_;
};

}  // namespace tenon::provider::vulkan
