// How reductions and softmax take a shape apart: into the axes along which they work and the others.
#pragma once

#include <cstdint>

#include "providers/cuda/kernels/arguments.h"
#include "sdk/provider/descriptor.h"

namespace tenon::provider::cuda {

// The axes of `mask` (all others where `inside` is false), as few as can be, the source's least stride innermost.
AxisSet axes_of(const OperandShape& src, const OperandShape& dst, uint32_t mask, bool inside);

// True if chunks of `size` bytes an element may be read as one, that begin at `address` plus any step along `axes`
// (strides[axis]) plus a multiple of a chunk.
bool rows_are_aligned(uint64_t address, int64_t size, const AxisSet& axes, const int64_t* strides);

// What works on one row together.
enum class Team : uint8_t { SOLO, WARP, BLOCK };
const char* team_name(Team team);
// Rows that a block of row_block threads works on at once.
int64_t teams_per_block(Team team);

}  // namespace tenon::provider::cuda
