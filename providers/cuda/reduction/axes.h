// Splits the axes of a shape into those that a kind works along, and the others.
#pragma once

#include <cstdint>

#include "providers/cuda/kernels/arguments.h"
#include "sdk/provider/descriptor.h"

namespace tenon::provider::cuda {

// The axes in `mask` (the other axes if `inside` is false), merged, with the source's least stride innermost.
AxisSet axes_of(const OperandShape& src, const OperandShape& dst, uint32_t mask, bool inside);

// All axes of `shape`, merged, in row-major order, with the strides of source and destination.
AxisSet row_major_axes(const OperandShape& shape);

// Merges neighbouring axes where both strides allow it. Keeps the order of elements.
void merge_axes(AxisSet* axes);

// True if a chunk of elements of `size` bytes may be read as one access. A chunk begins at `address` plus any step
// along `axes` plus a multiple of a chunk.
bool rows_are_aligned(uint64_t address, int64_t size, const AxisSet& axes, const int64_t* strides);

// The threads that work on one row together.
enum class Team : uint8_t { SOLO, WARP, BLOCK };
const char* team_name(Team team);
// The number of rows that a block of row_block threads computes at the same time.
int64_t teams_per_block(Team team);

}  // namespace tenon::provider::cuda
