// Shared by reduce, arg_reduce and softmax. row_space.h defines a row.
#pragma once

#include "providers/vulkan/kernels/row_space.h"
#include "providers/vulkan/primitive.h"

namespace tenon::provider::vulkan {

// Mirrors the push constants of shaders/rows.glsl.
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
  uint32_t aligned;
};

// Refuses unless `desc` has a static DST and SRC of equal rank, at least 1, with rows that fit 32-bit indices.
Refusal why_no_rows(const ep_device& device, const ep_primitive_desc& desc, uint32_t walked);

// The block size in elements for invocations of `device`: constant 8 of a module over rows.
int32_t block_for(const ep_device& device, const RowsSpace& space, int32_t operands);

// True if a block at `address` can be read in one access.
inline bool block_aligned(uint64_t address) { return address % 16 == 0; }

// The invocations that share a row on `device`: lane_bits_for.
uint32_t lane_bits_on(const ep_device& device, const RowsSpace& space);

// The grid for `values` values with 2^lane_bits invocations each, in workgroups of `threads`.
Grid rows_grid(const ep_device& device, uint64_t values, uint32_t lane_bits, uint32_t threads = row_threads);

// A primitive that consists of one dispatch over rows.
class RowPrimitive final : public ep_primitive {
 public:
  RowPrimitive(const RowsSpace& space, uint32_t lane_bits, uint32_t threads, std::shared_ptr<Pipeline> pipeline)
      : space_(space), lane_bits_(lane_bits), threads_(threads), pipeline_(std::move(pipeline)) {}
  ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const override;

 private:
  RowsSpace space_;
  uint32_t lane_bits_;
  uint32_t threads_;  // per workgroup
  std::shared_ptr<Pipeline> pipeline_;
};

}  // namespace tenon::provider::vulkan
