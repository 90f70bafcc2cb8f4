// Splits the axes of an operand into walked axes, which span a row, and kept axes, which number the rows. Pure.
#pragma once

#include <cstdint>

#include "sdk/provider/implementation.h"

namespace tenon::provider::opencl {

// Mirrors struct row_parameters of programs/axes.cl.
struct RowParameters {
  uint64_t rows;
  uint64_t length;
  uint64_t parts;
  uint64_t part_length;
  uint64_t dst;
  uint64_t src;
  uint64_t kept_dims[EP_MAX_RANK];
  uint64_t kept_dst[EP_MAX_RANK];
  uint64_t kept_src[EP_MAX_RANK];
  uint64_t walked_dims[EP_MAX_RANK];
  uint64_t walked_dst[EP_MAX_RANK];
  uint64_t walked_src[EP_MAX_RANK];
  int32_t kept_rank;
  int32_t walked_rank;
  int32_t op;
  int32_t flag;
};

inline constexpr uint64_t row_lanes = 64;  // LANES of programs/axes.cl

// Refuses unless `desc` has a static SRC as operand `src` with the rank of operand 0, and `walked` is a mask of its
// axes.
Refusal why_no_rows(const ep_primitive_desc& desc, uint32_t src, uint32_t walked);

// The rows of a static descriptor. `walked` is a mask of axes.
RowParameters rows_of(const ep_operand_desc& dst, const ep_operand_desc& src, uint32_t walked);

// True if one work-item should compute a row alone: for short rows, or rows that are closer in memory than their
// elements.
bool prefers_items(const RowParameters& rows);

}  // namespace tenon::provider::opencl
